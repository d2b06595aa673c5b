"""What thinking costs: the cost model of Kinetics, its limits and its directions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dse.core.batch import Batch
from dse.errors import SpecError
from dse_evaluators.clusters.reasoning.reasoners import REASONERS, weights
from dse_evaluators.clusters.reasoning.reasoning import Reasoning

BASE = {"model": "qwen3-4b", "tokens": 8192.0, "trials": 4, "prompt": 512.0}
SPARSE = {"attention": "block-top-k", "budget": 1024.0, "block": 16.0}
MODELS = st.sampled_from(sorted(REASONERS))
TOKENS = st.integers(1, 60_000)
TRIALS = st.integers(1, 64)
SOME = ["top-k", "block-top-k"]
LOOKS = st.sampled_from(["dense", *SOME])
ROUNDING = 1e-12
FEW = settings(max_examples=25, deadline=None)


def told(design, **options):
    got = Reasoning(**options).evaluate(Batch.of([design]))
    return {name: float(values[0]) for name, values in got.columns.items()}


def summed(prompt, written, budget):
    """Over an answer's tokens, how many each looks at; a token is there from its middle on."""
    return float(np.minimum(budget, prompt + np.arange(written) + 0.5).sum())


@pytest.mark.parametrize(
    ("metric", "theirs"),
    [("operations", 2.4198218238749236), ("flops", 23.931975815911674)],
)
def test_the_largest_model_costs_as_many_times_as_by_the_authors_code(metric, theirs):
    # `dense_cost` of Sadhukhan et al. 2025 (cost_model/utils.py at e776559), run on these sizes.
    small, large = (
        told({"model": f"qwen3-{size}", "tokens": 16_384, "prompt": 512}, counted="stored")
        for size in ("0.6b", "32b")
    )
    assert large[metric] / small[metric] == pytest.approx(theirs, rel=1e-12)


def test_a_model_of_your_own_costs_what_the_shipped_one_of_its_sizes_costs():
    shipped = told(BASE)
    own = told({**BASE, "model": "mine"}, models={"mine": {"like": "qwen3-4b", "name": "mine"}})
    assert "assumed_solved" not in own
    assert own == {name: shipped[name] for name in own}


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"models": {}}, "models is empty"),
        ({"models": {"a": "qwen3-4"}}, "qwen3-4"),
        ({"models": {"a": "qwen3-4b"}, "counted": "stored"}, "are unknown"),
    ],
)
def test_wrong_models_are_refused(options, problem):
    with pytest.raises(SpecError, match=problem):
        Reasoning(**options)


@pytest.mark.parametrize("name", ["qwen3-8b", "qwen3-14b", "qwen3-32b"])
def test_weights_are_those_of_the_files_without_the_embedding(name):
    # The models whose head is not tied; files also hold norms.
    rows = {"qwen3-8b": 4096, "qwen3-14b": 5120, "qwen3-32b": 5120}
    embedding = 151_936 * rows[name]
    assert weights(name, "multiplied") + embedding == pytest.approx(
        weights(name, "stored"), rel=5e-4
    )


@pytest.mark.parametrize(("name", "hidden"), [("qwen3-0.6b", 1024), ("qwen3-1.7b", 2048)])
def test_files_of_the_small_models_hold_the_tied_table_twice(name, hidden):
    once = weights(name, "multiplied")
    assert once + 151_936 * hidden == pytest.approx(weights(name, "stored"), rel=1e-3)


@FEW
@given(prompt=st.integers(0, 3000), written=st.integers(1, 3000), budget=st.integers(1, 8000))
def test_a_sparse_answer_looks_at_the_sum_of_what_its_tokens_look_at(prompt, written, budget):
    design = {"model": "qwen3-8b", "tokens": written, "prompt": prompt, "budget": budget}
    got = told({**design, "attention": "top-k"})
    width = 32 * 128 * 36
    looked = got["attention_operations"] / (4 * width)
    assert looked == pytest.approx(summed(prompt, written, budget), rel=1e-12)


@FEW
@given(model=MODELS, tokens=TOKENS, prompt=st.integers(0, 9000))
def test_a_budget_that_holds_all_costs_one_answer_what_a_dense_one_does(model, tokens, prompt):
    dense = {"model": model, "tokens": tokens, "prompt": prompt}
    sparse = {**dense, "attention": "top-k", "budget": tokens + prompt}
    assert told(sparse)["operations"] == pytest.approx(told(dense)["operations"], rel=1e-12)
    assert told(sparse)["assumed_solved"] == told(dense)["assumed_solved"]


@FEW
@given(model=MODELS, tokens=TOKENS, trials=TRIALS, look=LOOKS, more=st.integers(1, 9000))
def test_a_longer_answer_is_never_cheaper_and_never_solves_less_when_dense(
    model, tokens, trials, look, more
):
    design = {"model": model, "trials": trials, "attention": look}
    short, long = (told({**design, "tokens": n}) for n in (tokens, tokens + more))
    assert long["operations"] >= short["operations"]
    dense = [told({**design, "attention": "dense", "tokens": n}) for n in (tokens, tokens + more)]
    assert dense[1]["assumed_solved"] >= dense[0]["assumed_solved"] - ROUNDING


@FEW
@given(model=MODELS, tokens=TOKENS, trials=TRIALS, look=LOOKS)
def test_another_answer_is_never_cheaper_and_never_solves_less(model, tokens, trials, look):
    design = {"model": model, "tokens": tokens, "attention": look}
    fewer, more = (told({**design, "trials": n}) for n in (trials, trials + 1))
    assert more["operations"] > fewer["operations"]
    assert more["cache_memory"] > fewer["cache_memory"]
    assert 0.0 <= fewer["assumed_solved"] <= 1.0
    assert more["assumed_solved"] >= fewer["assumed_solved"] - ROUNDING


@FEW
@given(model=MODELS, tokens=TOKENS, budget=st.integers(1, 5000), look=st.sampled_from(SOME))
def test_a_larger_budget_is_never_cheaper_and_never_solves_less(model, tokens, budget, look):
    design = {"model": model, "tokens": tokens, "attention": look}
    less, more = (told({**design, "budget": n}) for n in (budget, 2 * budget))
    assert more["operations"] >= less["operations"]
    assert more["assumed_solved"] >= less["assumed_solved"] - ROUNDING


@FEW
@given(model=MODELS, tokens=TOKENS, trials=TRIALS)
def test_a_dense_answer_reads_the_prompt_once_for_all(model, tokens, trials):
    alone, shared = (
        told({"model": model, "tokens": tokens, "prompt": 4096, "trials": n}) for n in (1, trials)
    )
    assert shared["moved"] <= trials * alone["moved"] * (1 + 1e-12)


def test_where_bytes_cost_nothing_operations_are_those_of_the_products():
    got = told({**BASE, **SPARSE}, bandwidth=1e40)
    assert got["operations"] == pytest.approx(got["flops"], rel=1e-12)


def test_half_the_bits_of_the_cache_are_half_the_bytes():
    wide, narrow = (told({**BASE, **SPARSE, "cache_bits": bits}) for bits in (16, 8))
    assert narrow["moved"] == pytest.approx(wide["moved"] / 2, rel=1e-12)
    assert narrow["cache_memory"] == pytest.approx(wide["cache_memory"] / 2, rel=1e-12)


@pytest.mark.parametrize(
    "change",
    [
        {"model": "qwen3-8b"},
        {"tokens": 9000.0},
        {"trials": 5},
        {"prompt": 600.0},
        {"attention": "top-k"},
        {"budget": 600.0},
        {"block": 32.0},
        {"cache_bits": 8.0},
    ],
    ids=lambda change: next(iter(change)),
)
def test_no_reading_is_inert(change):
    design = {**BASE, **SPARSE}
    assert told({**design, **change})["operations"] != told(design)["operations"]


@pytest.mark.parametrize(
    "options", [{"counted": "all"}, {"rate": 0.0}, {"bandwidth": -1.0}, {"tokens": 0.0}]
)
def test_an_option_that_is_none_is_refused(options):
    with pytest.raises(SpecError):
        Reasoning(**options)


def test_a_model_that_has_no_curve_is_refused():
    with pytest.raises(SpecError, match="model"):
        Reasoning().check_values({"model": ["llama2-7b"]})
