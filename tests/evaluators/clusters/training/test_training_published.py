"""Training against what is in print: iterations, memory, rates, sizes, another tool's verdicts."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

from dse_evaluators.clusters.training.model_state import (
    block_weights,
    common_weights,
    expert_weights,
)
from dse_evaluators.workloads.transformer_configs import TRANSFORMERS
from tests import tables

ROOT = Path(__file__).parents[4]
CALCULON = {
    path: count
    for path, count in (
        (tables.CARRIED / "calculon_sample.csv", 56),
        (tables.ELSEWHERE / "calculon_reference.csv", 1064),
    )
    if path.exists()
}
"""Tables of Calculon's verdicts and their sizes: the sample, and all plans where they are there."""


@pytest.fixture(scope="module")
def bench():
    """The benchmark as a module: it has what was published."""
    spec = importlib.util.spec_from_file_location("training_bench", ROOT / "benchmarks/training.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["training_bench"] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules["training_bench"]


@pytest.fixture(scope="module")
def megatron(bench):
    return [row for model in bench.MEGATRON for row in bench.megatron(model)]


def test_megatrons_iterations_are_met_within_five_percent_on_average_and_ten_at_most(megatron):
    errors = np.abs([row["error"] for row in megatron if row["what"] == "seconds"])
    assert len(errors) == 8
    assert errors.mean() <= 0.05
    assert errors.max() <= 0.10


def test_megatrons_memory_is_met_within_eleven_percent(megatron):
    errors = np.abs([row["error"] for row in megatron if row["what"] == "GiB"])
    assert len(errors) == 8
    assert errors.max() <= 0.11


@pytest.mark.parametrize("path", CALCULON, ids=lambda path: path.stem)
def test_calculon_says_the_same_of_what_is_feasible_in_95_of_100_plans(bench, path):
    agreed = list(bench.verdicts(path))
    assert len(agreed) == CALCULON[path]
    assert np.mean(agreed) >= 0.95


def test_dense_models_in_8_bits_are_met_within_a_fifth(bench):
    dense = [one for one in bench.BRIDGE if TRANSFORMERS[one[0]].experts == 1]
    errors = [bench.rate(one)["error"] for one in dense]
    assert len(errors) == 5
    assert np.abs(errors).max() <= 0.2


def test_five_of_six_rates_of_newer_software_with_experts_are_met_within_a_quarter(bench):
    errors = np.abs([bench.rate(one, "26.06")["error"] for one in bench.NEWER_BRIDGE])
    assert len(errors) == 6
    assert sorted(errors)[4] <= 0.25
    assert max(errors) <= 0.33


# Jiang et al.: Mixtral of Experts, 2024 (47B, 13B active); xai-org/grok-1 (314B); Yang et al.: Qwen3
# Technical Report, 2025, table 2 (30.5B, 3.3B active; 235B, 22B active).
@pytest.mark.parametrize(
    ("name", "all_billions", "met_billions"),
    [
        ("mixtral-8x7b", 47, 13),
        ("qwen3-30b-a3b", 30.5, 3.3),
        ("qwen3-235b-a22b", 235, 22),
    ],
)
def test_models_of_experts_have_as_many_weights_as_is_in_print(name, all_billions, met_billions):
    model = TRANSFORMERS[name]
    ends = model.vocabulary * model.hidden * (1 if model.tied else 2)
    met = common_weights(model) + model.active_experts * expert_weights(model)
    whole = block_weights(model) * model.layers + ends
    assert whole / 1e9 == pytest.approx(all_billions, rel=0.01)
    assert (met * model.layers + ends) / 1e9 == pytest.approx(met_billions, rel=0.02)


def test_grok_has_as_many_weights_as_is_in_print():
    model = TRANSFORMERS["grok-1"]
    whole = block_weights(model) * model.layers + model.vocabulary * model.hidden
    assert whole / 1e9 == pytest.approx(314, rel=0.01)
