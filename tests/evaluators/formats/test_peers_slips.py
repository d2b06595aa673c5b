"""What other libraries get wrong, by value: none of it is ours."""

from __future__ import annotations

import numpy as np
import pytest

from dse.errors import EvaluationError
from dse_evaluators.formats.names import format_of


def quantized(text, values):
    return format_of(text).quantize(np.array(values, dtype=np.float32)).tolist()


# A float32 logarithm rounds log2(2^k (1 - 2^-24)) up to k: microxcaling's scale is then twice ours.
@pytest.mark.parametrize("power", [-40, -3, 0, 5, 17, 60])
def test_a_largest_number_just_under_a_power_of_two_has_the_lower_exponent(power):
    block = np.zeros(32, dtype=np.float32)
    block[0] = np.nextafter(np.float32(2.0**power), np.float32(0))
    exponent = format_of("mx:e2m1").encode(block).sides["exponent"]
    assert exponent.tolist() == [127 + power - 1 - 2]


# The same slip under the rule rceil: torchao's logarithm of 2^k (1 + 2^-23) is k.
@pytest.mark.parametrize("power", [-40, -3, 5, 17, 60])
def test_a_largest_number_just_beyond_the_grid_gets_the_next_scale(power):
    block = np.zeros(32, dtype=np.float32)
    block[0] = np.nextafter(np.float32(6 * 2.0**power), np.float32(np.inf))
    exponent = format_of("mx:e2m1,scale=rceil").encode(block).sides["exponent"]
    assert exponent.tolist() == [127 + power + 1]


# At the smallest scale, 2^-127, torchao divides by 2^-126: its numbers come back halved.
def test_the_smallest_scale_gives_numbers_back_as_they_were():
    block = np.zeros(32, dtype=np.float32)
    block[:2] = 2.0**-126, 2.0**-127
    assert np.array_equal(format_of("mx:e2m1").quantize(block), block)


# MASE clamps the mantissa when it rounds up to the next power of two: 0.01367 for 0.01535.
def test_a_mantissa_that_rounds_up_carries_into_the_exponent():
    assert quantized("fp:e4m3", [0.01535]) == [0.015625]


# qtorch rounds ties away from zero.
@pytest.mark.parametrize(
    ("text", "values", "wanted"),
    [
        ("fp:e4m3", [1.0625, -1.1875, 17.0], [1.0, -1.25, 16.0]),
        ("fixed:8.4", [0.03125, -0.03125, 0.15625], [0.0, 0.0, 0.125]),
        ("bfp:m7,b4", [1.0, 0.0078125, 0.0234375, 0.0], [1.0, 0.0, 0.03125, 0.0]),
    ],
)
def test_ties_go_to_the_even_neighbour(text, values, wanted):
    assert quantized(text, values) == wanted


# torch casts infinity to 448 and ml_dtypes to NaN: here the text says which.
def test_what_overflows_is_the_texts_choice_and_not_the_types():
    assert quantized("fp:e4m3", [np.inf]) == [448.0]
    assert np.isnan(quantized("fp:e4m3,overflow=ieee", [np.inf])).all()


# Comparing with NaN is never true, so microxcaling never finds it.
def test_a_nan_in_a_block_is_found():
    block = np.ones(32, dtype=np.float32)
    block[7] = np.nan
    with pytest.raises(EvaluationError, match="1 of 32 values are infinite or not a number"):
        format_of("mx:e4m3").quantize(block)


# The authors' code of AdaptivFloat loses two of its 2^e exponents.
def test_adaptivfloat_has_all_its_exponents():
    values = [1.0, 0.5, 0.25, 0.1875]
    assert quantized("adaptivfloat:4,2", values) == values
    assert quantized("adaptivfloat:4,2,variant=reference", values) == [1.0, 0.5, 0.0, 0.0]
