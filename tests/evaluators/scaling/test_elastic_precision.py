"""A model between two widths: its bytes counted by hand, and its steps."""

from __future__ import annotations

import pytest

from dse.core.batch import Batch
from dse.errors import SpecError
from dse_evaluators.scaling.elastic import MODULES, ElasticPrecision


def steps(model: str, wide: float, narrow: float, **others: float):
    design = {"wide_bits": wide, "narrow_bits": narrow, **others}
    return ElasticPrecision(model=model).evaluate(Batch.of([design]))


def test_the_modules_of_minilm_and_llama_are_those_of_the_models():
    assert (len(MODULES["minilm"]), sum(MODULES["minilm"])) == (36, 10_616_832)
    assert (len(MODULES["llama-2-7b"]), sum(MODULES["llama-2-7b"])) == (224, 6_476_005_376)


def test_scales_are_counted_and_both_widths_are_stored():
    columns = steps("minilm", 8, 3, group=32).columns
    assert columns["largest"][0] == 10_616_832 * 8.5 / 8
    assert columns["storage"][0] == 10_616_832 * (8.5 + 3.5) / 8


def test_steps_add_up_to_the_whole_span():
    columns = steps("minilm", 8, 3).columns
    assert columns["mean_step"][0] * 36 == pytest.approx(columns["switch_step"][0])
    assert columns["largest_step"][0] == 384 * 1536 * 5 / 8
    assert columns["largest"][0] - columns["least"][0] == columns["switch_step"][0]


def test_an_ensemble_of_equal_modules_takes_the_mean_of_both_ends():
    equal = ElasticPrecision(model="minilm")
    columns = equal.evaluate(Batch.of([{"wide_bits": 8, "narrow_bits": 4}])).columns
    ends = 37 * (columns["largest"][0] + columns["least"][0]) / 2
    assert columns["ensemble_storage"][0] == pytest.approx(ends, rel=0.02)


def test_a_narrow_model_that_is_no_narrower_is_no_design():
    assert steps("minilm", 4, 4).failures[0].kind == "infeasible"


def test_a_model_that_is_not_known_is_refused_with_the_nearest():
    with pytest.raises(SpecError, match="llama-2-70b"):
        ElasticPrecision(model="llama-2-70b")
