"""Rounding to number formats, against hand, print and ml_dtypes."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from dse.errors import EvaluationError
from dse_evaluators.formats.casting import largest, round_to_format, scales, values_of, words_of
from dse_evaluators.formats.words import FORMATS

ONE = np.ones(1, dtype=np.float32)
SMALL_FLOATS = [name for name, row in FORMATS.items() if row.kind == "float" and row.bits <= 16]
INTEGERS = [name for name, row in FORMATS.items() if row.kind == "int"]

vectors = arrays.arrays(
    np.float32,
    st.integers(1, 40),
    elements=st.floats(-(2.0**99), 2.0**99, width=32, allow_subnormal=False),
)


def scale_of(values, name):
    return scales(np.abs(values).max(keepdims=True), FORMATS[name])


def test_an_integer_vector_is_rounded_as_by_hand_with_ties_to_even():
    values = np.array([-0.875, -0.3125, -0.1875, 0.0, 0.0625, 0.1, 0.1875], dtype=np.float32)
    scale = scale_of(values, "int4")
    assert scale.tolist() == [0.125]
    by_hand = np.array([-7, -2, -2, 0, 0, 1, 2], dtype=np.float32) * np.float32(0.125)
    assert round_to_format(values, scale, FORMATS["int4"]).tolist() == by_hand.tolist()


# OFP8 1.0, table 1; MX 1.0, section 5.3; IEEE 754-2019 binary16; e3m4: 2^3 * (2 - 2^-4).
@pytest.mark.parametrize(
    ("name", "printed"),
    [
        ("fp16", 65504.0),
        ("fp8_e5m2", 57344.0),
        ("fp8_e4m3", 448.0),
        ("fp8_e3m4", 15.5),
        ("fp6_e3m2", 28.0),
        ("fp6_e2m3", 7.5),
        ("fp4_e2m1", 6.0),
        ("int8", 127.0),
        ("int2", 1.0),
    ],
)
def test_the_largest_number_is_the_standards(name, printed):
    assert largest(FORMATS[name]) == printed


# MX 1.0, section 5.3: all numbers of E2M1.
def test_four_bit_floats_are_the_eight_magnitudes_in_print():
    words = np.arange(8, dtype=np.uint32)
    printed = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0]
    assert values_of(words, ONE, FORMATS["fp4_e2m1"]).tolist() == printed


@pytest.mark.parametrize("name", SMALL_FLOATS)
def test_a_float_in_range_is_rounded_as_ml_dtypes_does(name):
    values = np.random.default_rng(0).uniform(-5, 5, 1000).astype(np.float32)
    dtype = getattr(ml_dtypes, FORMATS[name].dtype, None) or np.dtype(FORMATS[name].dtype)
    theirs = values.astype(dtype).astype(np.float32)
    assert np.array_equal(round_to_format(values, ONE, FORMATS[name]), theirs)


@pytest.mark.parametrize(("name", "dtype"), [("int4", ml_dtypes.int4), ("int8", np.int8)])
def test_an_integers_bits_are_twos_complement(name, dtype):
    whole = np.arange(-7, 8, dtype=np.float32)
    theirs = whole.astype(dtype).view(np.uint8) & (2 ** FORMATS[name].bits - 1)
    assert np.array_equal(words_of(whole, ONE, FORMATS[name]), theirs)


@pytest.mark.parametrize("name", [name for name in FORMATS if name != "fp32"])
def test_every_word_finds_its_way_back(name):
    row = FORMATS[name]
    words = np.arange(2**row.bits, dtype=np.uint32)
    with np.errstate(invalid="ignore"):
        every = values_of(words, ONE, row)
    inside = np.isfinite(every) & (np.abs(every) <= largest(row))
    words = words[inside & ((every != 0) | (words == 0))]
    assert len(words) >= 2**row.bits * 3 // 4 - 1
    assert np.array_equal(words_of(values_of(words, ONE, row), ONE, row), words)


@given(vectors, st.sampled_from(INTEGERS))
def test_an_integer_is_off_by_half_a_step_at_most(values, name):
    scale = scale_of(values, name)
    error = np.abs(round_to_format(values, scale, FORMATS[name]).astype(np.float64) - values)
    assert error.max() <= scale[0] / 2 * (1 + 1e-3 * FORMATS[name].bits)


@given(vectors, st.sampled_from(list(FORMATS)))
def test_words_that_are_rounded_again_stay_the_same(values, name):
    scale = scale_of(values, name)
    words = words_of(values, scale, FORMATS[name])
    again = values_of(words, scale, FORMATS[name])
    assert np.array_equal(words_of(again, scale, FORMATS[name]), words)
    assert np.array_equal(round_to_format(values, scale, FORMATS[name]), again)


def test_more_bits_give_less_error():
    values = np.random.default_rng(1).normal(size=4096).astype(np.float32)
    errors = [
        np.square(round_to_format(values, scale_of(values, name), FORMATS[name]) - values).mean()
        for name in INTEGERS
    ]
    assert (np.diff(errors) < 0).all()


@pytest.mark.parametrize("name", list(FORMATS))
@pytest.mark.parametrize("size", [1e-45, 1.0, 3.4028235e38])
def test_no_infinity_comes_out_however_large_or_small_the_values(name, size):
    values = np.array([-size, -size / 3, 0.0, size], dtype=np.float32)
    assert np.isfinite(round_to_format(values, scale_of(values, name), FORMATS[name])).all()


@pytest.mark.parametrize("name", list(FORMATS))
def test_what_is_too_large_for_the_scale_saturates(name):
    row = FORMATS[name]
    beyond = np.array([-3.4028235e38, 3.4028235e38], dtype=np.float32)
    assert round_to_format(beyond, ONE, row).tolist() == [-largest(row), largest(row)]


def test_an_all_zero_tensor_stays_zero():
    zeros = np.zeros(5, dtype=np.float32)
    assert (
        round_to_format(zeros, scale_of(zeros, "int8"), FORMATS["int8"]).tolist() == zeros.tolist()
    )


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
def test_what_is_no_finite_number_is_an_error_that_counts_it(wrong):
    values = np.array([1.0, wrong, 2.0], dtype=np.float32)
    with pytest.raises(EvaluationError, match="1 of 3 values are infinite or not a number"):
        round_to_format(values, ONE, FORMATS["int8"])


def test_an_empty_tensor_is_an_error():
    with pytest.raises(EvaluationError, match="empty"):
        round_to_format(np.zeros(0, dtype=np.float32), ONE, FORMATS["int8"])
