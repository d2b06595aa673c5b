"""What a format does to tensors, against what is known of it."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dse.core.batch import Batch
from dse.errors import PluginError, SpecError
from dse_evaluators.numerics.distortion import Distortion
from dse_evaluators.numerics.tensors import DISTRIBUTIONS, tensors


def told(text: str, name: str = "gaussian") -> dict[str, float]:
    metrics = Distortion(tensors=name).evaluate(Batch.of([{"weight_format": text}]))
    assert not metrics.failures
    return {key: float(values[0]) for key, values in metrics.columns.items()}


def test_uniform_numbers_in_integers_have_the_noise_of_a_uniform_quantiser() -> None:
    # 6.02 dB a bit for a range that is used to its ends, with 2 x 127 steps; scale in fp16
    assert told("int8:tensor", "uniform")["sqnr_db"] == pytest.approx(
        20 * math.log10(2 * 127), abs=0.1
    )


@pytest.mark.parametrize(("text", "sqnr_db"), [("binary", 4.396), ("kmeans:2", 9.3)])
def test_clusters_of_normal_numbers_have_the_error_of_the_best_quantiser(text, sqnr_db) -> None:
    # J. Max, Quantizing for Minimum Distortion, 1960, table I: errors 0.3634 and 0.1175
    assert told(text)["sqnr_db"] == pytest.approx(sqnr_db, abs=0.05)


def test_one_bit_more_is_six_decibels() -> None:
    gain = told("int7:tensor", "uniform")["sqnr_db"] - told("int6:tensor", "uniform")["sqnr_db"]
    assert gain == pytest.approx(20 * math.log10(63 / 31), abs=0.1)


def test_noise_and_decibels_say_the_same() -> None:
    found = told("fp:e4m3,tensor")
    assert found["sqnr_db"] == pytest.approx(-10 * math.log10(found["noise"]))


def test_numbers_without_a_mean_have_the_same_error_by_either_measure() -> None:
    found = told("int4:tensor")
    assert found["tensor_error"] == pytest.approx(math.sqrt(found["noise"]), rel=1e-3)


def test_a_format_without_loss_has_three_hundred_decibels() -> None:
    assert told("fp32")["sqnr_db"] == 300


def test_bits_are_those_of_the_format() -> None:
    assert told("mxfp4")["bits_per_weight"] == 4.25


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_what_is_drawn_is_drawn_again(name) -> None:
    tensors.cache_clear()
    first = tensors(name, 5)[name]
    tensors.cache_clear()
    assert np.array_equal(tensors(name, 5)[name], first)


def test_the_weights_of_a_model_are_tensors() -> None:
    found = tensors("shakespeare-lm", 0)
    assert found["blocks.0.ffn.down"].shape == (96, 384)


def test_the_design_may_say_the_tensors() -> None:
    rows = [{"weight_format": "int8:tensor", "tensors": name} for name in ("uniform", "outliers")]
    uniform, outliers = Distortion().evaluate(Batch.of(rows)).columns["sqnr_db"]
    assert uniform - outliers > 20


def test_numbers_that_a_format_makes_infinite_are_a_fault() -> None:
    metrics = Distortion(tensors="outliers").evaluate(
        Batch.of([{"weight_format": "fp:e2m1,specials=ieee,overflow=ieee"}])
    )
    assert "infinite" in metrics.failures[0].reason


def test_tensors_that_are_not_there_are_refused() -> None:
    with pytest.raises(SpecError, match="no tensors 'gausian'") as refused:
        Distortion(tensors="gausian")
    assert "gaussian" in refused.value.hint


def test_a_seed_that_is_none_is_refused() -> None:
    with pytest.raises(PluginError, match="seed"):
        Distortion(seed=-1)
