"""AdaptivFloat, NxFP, block floating point and others on vectors worked out from definitions."""

from __future__ import annotations

import numpy as np
import pytest

from dse_evaluators.formats.names import format_of


def quantized(text, values):
    return format_of(text).quantize(np.array(values, dtype=np.float32)).tolist()


# AdaptivFloat<4,2>: one mantissa bit. The largest is 6.5, so exponents run from -1 to 2; the code
# of 2^-1 is zero, the smallest number is 0.75 and the largest 6. What is below 0.375 is zero.
ADAPTIVFLOAT = (
    [6.5, 5.0, 4.9, 2.5, 3.5, 1.25, 0.8, 0.74, 0.5, 0.375, 0.37, -0.37, -0.4, -7.9],
    [6.0, 4.0, 4.0, 2.0, 4.0, 1.0, 0.75, 0.75, 0.75, 0.75, 0.0, -0.0, -0.75, -6.0],
)


def test_adaptivfloat_is_as_its_algorithm_says():
    assert quantized("adaptivfloat:4,2", ADAPTIVFLOAT[0]) == ADAPTIVFLOAT[1]


# AdaptivFloat<4,3> has no mantissa: exponents run from -5 to 2, zero is in the place of 2^-5, the
# smallest number is 2^-4 and the largest 4; 3 is as near to 4 as to 2 and goes to the even 2 * 2.
def test_adaptivfloat_without_a_mantissa_is_powers_of_two():
    values = [6.5, 5.0, 3.5, 3.0, 2.9, 0.0625, 0.04, 0.03, -0.7]
    wanted = [4.0, 4.0, 4.0, 4.0, 2.0, 0.0625, 0.0625, 0.0, -0.5]
    assert quantized("adaptivfloat:4,3", values) == wanted


def test_adaptivfloat_has_fifteen_numbers_at_four_bits():
    codes = np.arange(16, dtype=np.uint32)
    numbers = format_of("adaptivfloat:4,2").grid.values(codes) * 4
    wanted = [0.0, 0.75, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0]
    assert numbers[:8].tolist() == wanted
    assert len(np.unique(numbers)) == 15


# The published code: exponents from 1 to 2 alone, and what is below 2 is cut.
def test_the_reference_variant_cuts_what_is_below_its_smallest_number():
    found = quantized("adaptivfloat:4,2,variant=reference", [6.5, 3.4, 2.0, 1.99, 0.75, -5.0])
    assert found == [6.0, 3.0, 2.0, 0.0, 0.0, -4.0]


# A block whose largest is 7: its power of two is 2^2 / 2^2 = 1, and E2M1 holds 0 .5 1 1.5 2 3 4 6.
BLOCK = [7.0, 5.0, 3.5, 1.0, 0.5, 0.0, -2.0, -6.0] + [0.0] * 24


def test_an_mx_block_saturates_under_the_floor_rule():
    assert quantized("mx:e2m1", BLOCK)[:8] == [6.0, 4.0, 4.0, 1.0, 0.5, 0.0, -2.0, -6.0]


# Whole numbers up to 7 hold all but 3.5 and 0.5: as E2M1 (7 - 6)^2 + (5 - 4)^2 + 0.5^2 = 2.25,
# as whole numbers 0.5^2 + 0.5^2 = 0.5; ties go to the even 4 and 0.
def test_the_microexponent_takes_the_numbers_with_the_lesser_error():
    text = "nxfp:4,nano=off,recycle=off"
    encoded = format_of(text).encode(np.array(BLOCK, dtype=np.float32))
    assert encoded.sides["micro"].tolist() == [1]
    assert quantized(text, BLOCK)[:8] == [7.0, 5.0, 4.0, 1.0, 0.0, 0.0, -2.0, -6.0]


# 7.5 and 5 are 6 and 4 times 1.25: the scale with mantissa one quarter holds both, and no other.
def test_the_nanomantissa_finds_the_scale_that_holds_the_block():
    values = [7.5, 5.0, -2.5, 1.25] + [0.0] * 28
    text = "nxfp:4,micro=off,recycle=off"
    assert quantized(text, values) == values
    encoded = format_of(text).encode(np.array(values, dtype=np.float32))
    assert (encoded.sides["exponent"].tolist(), encoded.sides["nano"].tolist()) == ([127], [1])


# Half of the smallest is 0.25; from an eighth to three eighths it is the nearest.
def test_the_recycled_code_is_half_of_the_smallest_number():
    values = [6.0, 0.25, 0.126, 0.374, 0.124, 0.376, -0.2, -0.25] + [0.0] * 24
    text = "nxfp:4,nano=off,micro=off"
    found = [6.0, 0.25, 0.25, 0.25, 0.0, 0.5, 0.0, 0.0]
    assert quantized(text, values)[:8] == found
    assert format_of(text).encode(np.array(values, dtype=np.float32)).codes[1] == 0b1000


# Midway between the two largest, 4 and 6, lies 5; from 4.5 to 5.5 it is the nearest.
def test_the_recycled_code_can_be_the_middle_of_the_largest():
    values = [6.0, 5.0, 4.6, 5.4, 4.4, -5.2] + [0.0] * 26
    found = quantized("nxfp:4,nano=off,micro=off,recycle=middle", values)
    assert found[:6] == [6.0, 5.0, 5.0, 5.0, 4.0, -6.0]


# MSFP-12 (three bits of magnitude): the largest is 1.9, so steps are 2^(0 + 1 - 3) = 0.25.
def test_block_floating_point_has_the_steps_of_the_largest_number():
    values = [1.9, 0.375, 0.3, -0.12, -0.13, 1.0] + [0.0] * 10
    assert quantized("msfp12", values)[:6] == [1.75, 0.5, 0.25, 0.0, -0.25, 1.0]


# The exponent turns at the square root of two by logarithm, and at one and a half by value.
@pytest.mark.parametrize(
    ("nearest", "wanted"),
    [
        ("log", [4.0, 2.0, 4.0, 4.0, 0.0625, 0.0, -0.0]),
        ("value", [4.0, 2.0, 2.0, 4.0, 0.0625, 0.0625, -0.0625]),
    ],
)
def test_powers_of_two_are_nearest_by_logarithm_or_by_value(nearest, wanted):
    values = [4.0, 2.8, 2.9, 3.0, 0.0625, 0.04, -0.04]
    assert quantized(f"log:4,nearest={nearest}", values) == wanted


# Mean magnitude 1.25, threshold 0.875; beyond it are 1, 2 and 2, whose mean in fp16 is 1.6669921875.
def test_ternary_weights_have_the_mean_of_what_is_beyond_the_threshold():
    scale = float(np.float16(5 / 3))
    assert quantized("ternary", [1.0, -2.0, 2.0, 0.0]) == [scale, -scale, scale, 0.0]


def test_binary_weights_have_the_mean_magnitude_and_no_zero():
    assert quantized("binary", [1.0, -2.0, 0.0, -0.0]) == [0.75, -0.75, 0.75, 0.75]


def test_fixed_point_has_steps_of_its_fraction_and_saturates():
    assert quantized("fixed:8.4", [0.03125, 0.09375, 7.99, -9.0, 0.1]) == [
        0.0,
        0.125,
        7.9375,
        -8.0,
        0.125,
    ]


# From -1 to 2 in 15 steps of 0.2, zero at the code 5.
def test_an_asymmetric_integer_reaches_from_the_least_to_the_largest():
    text = "int4:asym,scale=fp32"
    encoded = format_of(text).encode(np.array([-1.0, 2.0, 0.0, 0.31], dtype=np.float32))
    assert encoded.sides["zero"].tolist() == [5]
    assert encoded.codes.tolist() == [0, 15, 5, 7]


def test_clusters_of_few_distinct_numbers_are_those_numbers():
    values = np.tile(np.array([-0.5, 0.1, 0.25, 3.0], dtype=np.float32), 50)
    assert np.array_equal(format_of("kmeans:2").quantize(values), values)


# Lloyd from the ends 0 and 10: {0, 1, 2} and {9, 10}.
def test_clusters_have_the_means_of_their_members():
    found = quantized("kmeans:1", [0.0, 1.0, 2.0, 9.0, 10.0])
    assert found == [1.0, 1.0, 1.0, 9.5, 9.5]


@pytest.mark.parametrize("name", ["fp32", "fp16", "bf16", "fp:e4m3"])
def test_what_is_no_number_comes_back_as_none(name):
    made = format_of(name)
    assert np.isnan(made.decode(made.encode(np.array([np.nan, 1.0], np.float32)))).tolist() == [
        True,
        False,
    ]
