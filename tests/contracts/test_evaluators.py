"""Every registered evaluator keeps the laws of its protocol."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from dse.core.batch import Batch
from dse.core.metric import Metrics
from dse.core.values import Value
from dse.protocols import Evaluator
from dse.registry import load, names
from dse.report.json.plugin_docstring import read_docstring
from dse.testing.evaluator_contract import EvaluatorContract
from dse_evaluators.outside.environments import ENVIRONMENTS
from dse_evaluators.workloads.assets import is_installed


@dataclass(frozen=True, kw_only=True)
class Case:
    """A registered evaluator with options and designs; ``files`` are written beforehand.

    ``speed`` is the mark of tests that are not fast: ``slow``, or ``proof`` where an environment
    takes seconds to start and each law starts it anew.
    """

    designs: Sequence[Mapping[str, Value]]
    options: Mapping[str, Any] = field(default_factory=dict)
    noisy: Sequence[str] = ()
    files: Mapping[str, str] = field(default_factory=dict)
    packages: Sequence[str] = ()
    assets: Sequence[str] = ()
    environments: Sequence[str] = ()
    speed: str = ""


def _listed(path: Path) -> dict[str, Case]:
    """The cases of a file; ``{python}`` is the interpreter that runs."""
    text = path.read_text(encoding="utf-8").replace("{python}", sys.executable)
    return {name: Case(**told) for name, told in yaml.safe_load(text).items()}


FILES = sorted(Path(__file__).with_name("evaluators").glob("*.yaml"))
CASES = {name: case for path in FILES for name, case in _listed(path).items()}
# ``dict`` is a function that can be imported anywhere: each metric is the parameter of its name
CASES["python"] = Case(
    options={"function": dict, "metrics": {"rows": ""}, "reads": ["rows"]},
    designs=(
        {"rows": 8, "colour": "red"},
        {"rows": "many", "colour": "red"},
        {"rows": 9, "colour": "blue"},
    ),
)


def _of_example(name: str) -> Case:
    """The example in the docstring of an evaluator that has no case of its own.

    Every other design has a parameter that no evaluator declares, and so may not read.
    """
    example = read_docstring(load("evaluators", name)).example
    assert example is not None, f"{name} has neither an example nor a case"
    rows = enumerate(example.designs)
    designs = [{**design, **({"colour": "red"} if row % 2 else {})} for row, design in rows]
    return Case(options=example.options, designs=designs)


CASES |= {name: _of_example(name) for name in names("evaluators") if name not in CASES}


class TestEveryEvaluator(EvaluatorContract):
    @pytest.fixture(
        scope="class",
        params=[
            pytest.param(name, marks=getattr(pytest.mark, case.speed) if case.speed else ())
            for name, case in CASES.items()
        ],
    )
    @classmethod
    def name(cls, request: pytest.FixtureRequest) -> str:
        for package in CASES[request.param].packages:
            pytest.importorskip(package)
        for asset in CASES[request.param].assets:
            if not is_installed(asset):
                pytest.skip(f"needs the asset {asset!r}: dse assets install {asset}")
        for needed in CASES[request.param].environments:
            if not ENVIRONMENTS[needed].installed:
                pytest.skip(f"needs an environment: dse environments install {needed}")
        return request.param

    @pytest.fixture(scope="class")
    @classmethod
    def make(cls, name: str, tmp_path_factory: pytest.TempPathFactory) -> Callable[[], Evaluator]:
        options = dict(CASES[name].options)
        for option, text in CASES[name].files.items():
            path = tmp_path_factory.mktemp("files") / f"{option}.csv"
            path.write_text(text)
            options[option] = str(path)
        return partial(load("evaluators", name), **options)

    @pytest.fixture(scope="class")
    @classmethod
    def batch(cls, name: str) -> Batch:
        return Batch.of(CASES[name].designs)

    @pytest.fixture(scope="class")
    @classmethod
    def metrics(cls, make: Callable[[], Evaluator], batch: Batch) -> Metrics:
        """Asked once for all laws of an evaluator: some train a network to answer."""
        return make().evaluate(batch)

    @pytest.fixture
    def noisy(self, name: str) -> frozenset[str]:
        return frozenset(CASES[name].noisy)
