"""What a memory returns after flips: in each format as its bits state, under each protection."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from dse.errors import SpecError
from dse_evaluators.faults.proportions import sum_proportions, wilson
from dse_evaluators.faults.protections import PROTECTIONS, check_protection
from dse_evaluators.faults.stored_layer import StoredLayer

WEIGHT = np.random.default_rng(0).normal(size=(6, 8)).astype(np.float32)
PLACES = np.arange(WEIGHT.size)


def read(form: str, protection: str, flips: np.ndarray, copies: object = ()) -> np.ndarray:
    found = PROTECTIONS[protection]
    stored = StoredLayer(form, WEIGHT)
    count = len(found.copies(stored.code))
    given = np.array(copies, dtype=np.uint64).reshape(-1, len(PLACES))
    masks = given if len(given) else np.zeros((count, len(PLACES)), dtype=np.uint64)
    return stored.read(found, PLACES, flips, masks)


@pytest.mark.parametrize(
    ("form", "kind", "word"),
    [
        ("fp32", np.float32, np.uint32),
        ("bf16", ml_dtypes.bfloat16, np.uint16),
        ("fp:e5m2", ml_dtypes.float8_e5m2, np.uint8),
    ],
)
def test_flips_in_floats_are_those_of_their_words_in_memory(form, kind, word):
    bits = np.random.default_rng(1).integers(8 * word().itemsize, size=WEIGHT.size)
    flips = np.uint64(1) << bits.astype(np.uint64)
    stored = WEIGHT.astype(kind).view(word).reshape(-1)
    wanted = (stored ^ flips.astype(word)).view(kind).astype(np.float32)
    np.testing.assert_array_equal(read(form, "none", flips), wanted)


def test_flipped_sign_bit_of_an_integer_moves_it_by_half_of_the_range():
    stored = StoredLayer("int8:tensor", WEIGHT)
    step = np.abs(WEIGHT).max() / 127
    moved = read("int8:tensor", "none", np.full(WEIGHT.size, 1 << 7, dtype=np.uint64))
    np.testing.assert_allclose(np.abs(moved - stored.values.reshape(-1)), 128 * step, rtol=1e-3)


@pytest.mark.parametrize("form", ["fp32", "fp8_e4m3", "int4:group=8", "posit:8,1"])
def test_majority_of_three_corrects_each_single_flip(form):
    stored = StoredLayer(form, WEIGHT)
    bits = np.random.default_rng(2).integers(stored.code.bits, size=WEIGHT.size).astype(np.uint64)
    flips = np.uint64(1) << bits
    none = np.zeros_like(flips)
    for masks in ((flips, none, none), (none, flips, none), (none, none, flips)):
        found = read(form, "tmr", masks[0], masks[1:])
        np.testing.assert_array_equal(found, stored.values.reshape(-1))


def test_two_copies_with_the_same_flip_outvote_the_third():
    flips = np.full(WEIGHT.size, 1 << 31, dtype=np.uint64)
    found = read("fp32", "tmr", flips, (flips, np.zeros_like(flips)))
    np.testing.assert_array_equal(found, -WEIGHT.reshape(-1))


def test_parity_reads_zero_after_one_flip_and_misses_two():
    one = np.full(WEIGHT.size, 1 << 31, dtype=np.uint64)
    assert not read("fp32", "parity", one).any()
    two = one | np.uint64(1 << 30)
    np.testing.assert_array_equal(read("fp32", "parity", two), read("fp32", "none", two))


def test_duplicated_exponent_reads_zero_and_leaves_the_mantissa_unprotected():
    high = np.full(WEIGHT.size, 1 << 30, dtype=np.uint64)
    low = np.full(WEIGHT.size, 1 << 3, dtype=np.uint64)
    assert not read("fp32", "duplicate", high).any()
    np.testing.assert_array_equal(read("fp32", "duplicate", low), read("fp32", "none", low))


def test_clipped_weights_stay_in_the_range_of_the_layer():
    flips = np.uint64(1) << np.random.default_rng(3).integers(32, size=WEIGHT.size).astype(
        np.uint64
    )
    found = read("fp32", "clip", flips)
    assert found.min() >= WEIGHT.min()
    assert found.max() <= WEIGHT.max()


def test_weights_outside_of_the_range_are_read_as_zero():
    high = np.full(WEIGHT.size, 1 << 30, dtype=np.uint64)
    flat = WEIGHT.reshape(-1)
    grown = np.abs(read("fp32", "none", high)) > np.abs(flat).max()
    assert grown.any()
    np.testing.assert_array_equal(read("fp32", "range-zero", high)[grown], 0)
    none = np.zeros(WEIGHT.size, dtype=np.uint64)
    np.testing.assert_array_equal(read("fp32", "range-zero", none), flat)


def test_parity_of_the_exponent_leaves_the_mantissa_unprotected():
    sign = np.full(WEIGHT.size, 1 << 31, dtype=np.uint64)
    low = np.full(WEIGHT.size, 1 << 3, dtype=np.uint64)
    assert not read("fp32", "exponent-parity", sign).any()
    np.testing.assert_array_equal(read("fp32", "exponent-parity", low), read("fp32", "none", low))


@pytest.mark.parametrize(("form", "checks"), [("fp32", 7), ("bf16", 6), ("int8:tensor", 5)])
def test_correcting_code_corrects_one_flip_and_detects_two(form, checks):
    stored = StoredLayer(form, WEIGHT)
    one = np.full(WEIGHT.size, 1 << 2, dtype=np.uint64)
    none = np.zeros_like(one)
    assert PROTECTIONS["ecc"].check_bits(stored.code) == checks
    for flips, copies in ((one, none), (none, one)):
        found = read(form, "ecc", flips, (copies,))
        np.testing.assert_array_equal(found, stored.values.reshape(-1))
    assert not read(form, "ecc", one, (one,)).any()


@pytest.mark.parametrize("name", ["duplicate", "exponent-parity"])
def test_integers_have_no_exponent_to_protect(name):
    with pytest.raises(SpecError, match=f"int8 has no exponent, which {name} protects"):
        check_protection(name, StoredLayer("int8", WEIGHT).code)


@pytest.mark.parametrize(
    ("count", "trials", "low", "high"),
    [
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ],
)
def test_score_interval_is_that_in_print(count, trials, low, high):
    """Newcombe: Two-Sided Confidence Intervals for the Single Proportion, 1998, table I, no. 3."""
    found = wilson(count, trials)
    assert (found.low, found.high) == pytest.approx((low, high), abs=5e-5)


def test_sum_of_one_estimate_is_itself():
    assert sum_proportions([wilson(3, 20)]) == pytest.approx(wilson(3, 20))
