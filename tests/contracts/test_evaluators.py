"""Every registered evaluator keeps the laws of its protocol."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from dse.core.batch import Batch
from dse.core.values import Value
from dse.protocols import Evaluator
from dse.registry import load, names
from dse.testing.evaluator_contract import EvaluatorContract


@dataclass(frozen=True, kw_only=True)
class Case:
    """A registered evaluator with options and designs; ``files`` are written beforehand."""

    options: Mapping[str, Any]
    designs: tuple[Mapping[str, Value], ...]
    noisy: frozenset[str] = frozenset()
    files: Mapping[str, str] | None = None


CASES = {
    "accelerators.systolic": Case(
        options={"workload": "digits-cnn"},
        designs=(
            {
                "rows": 16,
                "cols": 32,
                "dataflow": "ws",
                "ifmap_sram": 65536,
                "filter_sram": 65536,
                "ofmap_sram": 32768,
                "clock": 1e9,
                "dram_bandwidth": 1e10,
                "weight_format": "int8",
                "activation_format": "int8",
                "filter_keep": 1.0,
                "sparsity": 0.0,
                "colour": "red",
            },
            {
                "rows": 8,
                "cols": 8,
                "dataflow": "os",
                "ifmap_sram": 32768,
                "filter_sram": 32768,
                "ofmap_sram": 32768,
                "clock": 5e8,
                "dram_bandwidth": 4e9,
                "weight_format": "int4",
                "activation_format": "int8",
                "filter_keep": 0.5,
                "sparsity": 0.5,
                "colour": "blue",
            },
        ),
    ),
    "compression.post-training": Case(
        options={"model": "digits-cnn"},
        designs=(
            {
                "weight_format": "int8",
                "granularity": "channel",
                "activation_format": "int8",
                "sparsity": 0.0,
                "filter_keep": 1.0,
                "colour": "red",
            },
            {
                "weight_format": "int4",
                "granularity": "tensor",
                "activation_format": "fp32",
                "sparsity": 0.5,
                "filter_keep": 0.5,
                "colour": "blue",
            },
        ),
        noisy=frozenset({"latency"}),
    ),
    "command": Case(
        options={
            "run": [
                sys.executable,
                "-c",
                "import json, sys; d = json.load(sys.stdin); assert 'colour' not in d;"
                "print(json.dumps({'area': d['rows'] * d['cols'], 'twice': 2 / d['rows']}))",
            ],
            "metrics": {"area": "mm2", "twice": ""},
            "reads": ["rows", "cols"],
        },
        designs=(
            {"rows": 8, "cols": 4, "colour": "red"},
            {"rows": 0, "cols": 2, "colour": "red"},
            {"rows": 16, "cols": 2, "colour": "blue"},
        ),
    ),
    "expression": Case(
        options={"metrics": {"edp": {"formula": "energy * latency / share", "unit": "mJ s"}}},
        designs=(
            {"energy": 2e-3, "latency": 0.5, "share": 1, "colour": "red"},
            {"energy": 2e-3, "latency": 0.5, "share": 0, "colour": "red"},
            {"energy": 1e-3, "latency": 0.25, "share": 3, "colour": "blue"},
        ),
    ),
    # ``dict`` is a function that can be imported anywhere: each metric is the parameter of its name
    "python": Case(
        options={"function": dict, "metrics": {"rows": ""}, "reads": ["rows"]},
        designs=(
            {"rows": 8, "colour": "red"},
            {"rows": "many", "colour": "red"},
            {"rows": 9, "colour": "blue"},
        ),
    ),
    "table": Case(
        options={"metrics": {"power": "W"}},
        files={"file": "rows,format,power\n8,int8,1\n8,int8,2\n16,fp8,3\n"},
        designs=(
            {"rows": 8, "format": "int8", "colour": "red"},
            {"rows": 8, "format": "fp8", "colour": "red"},
            {"rows": 16.0, "format": "fp8", "colour": "blue"},
        ),
    ),
}

SLOW = ("compression.post-training",)


def test_every_registered_evaluator_has_a_case() -> None:
    assert set(CASES) == set(names("evaluators"))


class TestEveryEvaluator(EvaluatorContract):
    @pytest.fixture(
        params=[
            pytest.param(name, marks=pytest.mark.slow if name in SLOW else ()) for name in CASES
        ]
    )
    def name(self, request: pytest.FixtureRequest) -> str:
        return request.param

    @pytest.fixture
    def make(self, name: str, tmp_path: Path) -> Callable[[], Evaluator]:
        options = dict(CASES[name].options)
        for option, text in (CASES[name].files or {}).items():
            path = tmp_path / f"{option}.csv"
            path.write_text(text)
            options[option] = str(path)
        return partial(load("evaluators", name), **options)

    @pytest.fixture
    def batch(self, name: str) -> Batch:
        return Batch.of(CASES[name].designs)

    @pytest.fixture
    def noisy(self, name: str) -> frozenset[str]:
        return CASES[name].noisy
