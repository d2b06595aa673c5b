"""What holds for every format, or for every one of a kind."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from dse_evaluators.formats.families import FAMILIES
from dse_evaluators.formats.names import ALIASES, format_of

UNSCALED = (
    *("fp32", "fp16", "bf16", "fp:e4m3", "fp:e5m2,bias=9", "fp:e3m4,overflow=ieee", "fp:e2m1"),
    *("fp:e4m3,specials=nuz", "fp:e1m3", "fp:e8m3", "fixed:8.4", "posit:8,1", "posit:16,2"),
)
FIXED_SCALE = (
    *("int8", "int8:channel", "int4:group=32", "int2:group=32,full", "mx:e2m1", "mx:e4m3"),
    *("mx:e5m2,scale=even", "mx:e3m2,scale=ceil", "mx:e2m3,scale=rceil", "mx:int8", "nvfp4"),
    *("bfp:m4,b16", "adaptivfloat:8,3", "adaptivfloat:8,3,variant=reference", "nf4", "log:4"),
    *("log:5,nearest=value,channel", "fp:e4m3,channel"),
)
CHOSEN = (
    *("int4:group=32,asym", "int4:group=32,mse", "int8:percentile=99", "int4:asym,mse,scale=bf16"),
    *("int4:group=32,full-range", "int8:channel,asym,full-range", "int3:mse,full-range"),
    *("nxfp:4", "nxfp:5,recycle=middle", "nxfp:6,micro=off", "nf4:double", "ternary", "binary"),
    *("kmeans:3", "posit:8,1,rms", "posit:6,2,channel,max"),
)
ALL = UNSCALED + FIXED_SCALE + CHOSEN
BY_CHANCE = tuple(text for text in ALL if text not in ("ternary", "binary"))

# Every power of two in a float32's middle, and every mantissa.
tensors = arrays.arrays(
    np.float32,
    st.sampled_from([(1, 64), (3, 128)]),
    elements=st.floats(-(2.0**60), 2.0**60, width=32, allow_subnormal=False),
)


def drawn(shape=(64, 256), seed=0):
    return np.random.default_rng(seed).normal(0, 0.05, shape).astype(np.float32)


def same_bits(left, right):
    return np.array_equal(left.view(np.uint32), right.view(np.uint32))


def with_chance(text, seed):
    return format_of(f"{text}{',' if ':' in text else ':'}rounding=stochastic,seed={seed}")


@given(tensors, st.sampled_from(ALL))
def test_what_is_encoded_and_decoded_is_what_is_quantised(values, text):
    chosen = format_of(text)
    assert same_bits(chosen.decode(chosen.encode(values)), chosen.quantize(values))


@given(tensors, st.sampled_from(ALL))
def test_the_bits_that_are_counted_are_those_that_are_written(values, text):
    chosen = format_of(text)
    data = chosen.pack(chosen.encode(values))
    assert len(data) == chosen.bits(values.shape).total_bytes
    assert same_bits(chosen.decode(chosen.unpack(data, values.shape)), chosen.quantize(values))


@given(tensors, st.sampled_from(FIXED_SCALE))
def test_with_a_scale_nothing_moves_twice_but_by_a_rounding(values, text):
    # Of such sizes an fp16 scale has all its bits.
    normal = np.clip(np.where(np.abs(values) < 0.1, 0, values), -1e4, 1e4).astype(np.float32)
    once = format_of(text).quantize(normal)
    assert np.allclose(format_of(text).quantize(once), once, rtol=1e-6, atol=0)


@given(tensors, st.sampled_from(UNSCALED))
def test_without_a_scale_nothing_moves_twice(values, text):
    once = format_of(text).quantize(np.clip(values, -8, 8))
    assert same_bits(format_of(text).quantize(once), once)


@given(tensors, st.sampled_from(ALL))
def test_everything_comes_out_finite_and_in_the_same_shape(values, text):
    found = format_of(text).quantize(np.clip(values, -8, 8))
    assert found.shape == values.shape
    assert found.dtype == np.float32
    assert np.isfinite(found).all()


# Powers of two move the exponents alone: of what has its own exponent for each block or tensor.
@pytest.mark.parametrize("power", [-20, -1, 3, 30])
@pytest.mark.parametrize(
    "text",
    [
        *("mx:e2m1", "mx:e4m3,scale=even", "mx:int8", "bfp:m4,b16", "adaptivfloat:6,2", "log:4"),
        *("nxfp:4", "nxfp:5,recycle=middle", "int4:group=32,scale=fp32", "nf4", "kmeans:4"),
        *("int4:group=32,asym,scale=fp32", "int4:group=32,mse,scale=fp32", "int8:scale=bf16"),
    ],
)
def test_twice_the_values_become_twice_the_numbers(text, power):
    values = drawn()
    factor = np.float32(2.0**power)
    assert same_bits(
        format_of(text).quantize(values * factor), format_of(text).quantize(values) * factor
    )


@pytest.mark.parametrize(
    "rising",
    [
        [f"int{bits}:channel" for bits in range(2, 13)],
        [f"int{bits}:group=32,asym" for bits in range(2, 13)],
        [f"int{bits}:group=32,mse" for bits in range(2, 9)],
        [f"fp:e4m{bits}" for bits in range(1, 11)],
        ["mx:e2m1", "mx:e2m3", "mx:int8"],
        [f"bfp:m{bits},b16" for bits in range(2, 12)],
        [f"posit:{bits},1,rms" for bits in range(4, 15)],
        [f"adaptivfloat:{bits},3" for bits in range(5, 13)],
        [f"nxfp:{bits}" for bits in range(4, 9)],
        [f"kmeans:{bits}" for bits in range(1, 8)],
        [f"fixed:{bits + 1}.{bits}" for bits in range(3, 12)],
        [f"log:{bits}" for bits in range(3, 6)],
        ["mx:e2m1", "nxfp:4,micro=off,recycle=off", "nxfp:4,recycle=off"],
        ["binary", "ternary", "kmeans:2", "nf4", "int8:channel"],
    ],
    ids=lambda rising: f"{rising[0]} to {rising[-1]}",
)
def test_more_bits_give_less_error(rising):
    values = drawn(seed=1)
    errors = [np.square(format_of(text).quantize(values) - values).mean() for text in rising]
    assert (np.diff(errors) <= 0).all()
    assert errors[-1] < errors[0]


@pytest.mark.parametrize("text", ["int4:group=32", "mx:e2m1", "nvfp4", "nxfp:4", "bfp:m4,b16"])
@pytest.mark.parametrize("axis", [0, 1, 2, -1])
def test_any_axis_can_hold_the_blocks(text, axis):
    values = drawn((32, 64, 96))
    turned = np.ascontiguousarray(np.moveaxis(values, axis, -1))
    expected = np.moveaxis(format_of(text).quantize(turned), -1, axis)
    found = format_of(text).quantize(values, axis)
    assert np.array_equal(found, expected)
    assert np.array_equal(format_of(text).decode(format_of(text).encode(values, axis)), found)


def test_several_axes_count_as_one_row():
    filters = drawn((16, 4, 3, 3))
    flat = format_of("int8:channel").quantize(filters.reshape(16, 36))
    found = format_of("int8:channel").quantize(filters, (1, 2, 3))
    assert np.array_equal(found.reshape(16, 36), flat)


def test_a_block_longer_than_the_row_is_the_row():
    values = np.random.default_rng(3).normal(size=(4, 40)).astype(np.float32)
    huge, whole = format_of("bfp:m3,b1048576,tail=short"), format_of("bfp:m3,b40")
    assert huge.encode(values).codes.size == values.size
    assert np.array_equal(huge.quantize(values), whole.quantize(values))
    assert huge.bits(values.shape).total == whole.bits(values.shape).total


def test_a_short_last_block_is_that_block_by_itself():
    values = drawn((3, 40))
    found = format_of("mx:e2m1,tail=short").quantize(values)
    assert np.array_equal(found[:, :32], format_of("mx:e2m1").quantize(values[:, :32]))
    assert np.array_equal(found[:, 32:], format_of("mx:e2m1,block=8").quantize(values[:, 32:]))


@pytest.mark.parametrize("text", BY_CHANCE)
def test_chance_is_the_seeds_alone(text):
    values = drawn()
    first = with_chance(text, 7).quantize(values)
    assert same_bits(with_chance(text, 7).quantize(values), first)
    exact = text in ("fp32", "posit:16,2", "fp16")
    assert exact or not same_bits(with_chance(text, 8).quantize(values), first)


# A thousandth of a step: twenty thousand draws between two neighbours have a mean within four
# standard errors, 4 * 0.5 / sqrt(2e4) = 0.014 steps.
@pytest.mark.parametrize(
    ("text", "step"),
    [
        ("fp:e4m3", 2.0**-5),
        ("fp:e2m1", 0.5),
        ("fixed:8.4", 2.0**-4),
        ("posit:8,1", 2.0**-5),
        ("mx:e2m1", 2.0**-3),
        ("log:4", 2.0**-2),
        ("bf16", 2.0**-9),
    ],
)
def test_chance_is_right_on_average(text, step):
    values = np.full((1, 20_032), 0.337, dtype=np.float32)
    values[0, ::32] = 1.0  # what the scale is found from
    inner = with_chance(text, 3).quantize(values)[0, values[0] < 1]
    assert len(np.unique(inner)) == 2
    assert abs(inner.mean(dtype=np.float64) - np.float32(0.337)) < 0.014 * step


@pytest.mark.parametrize("text", [*ALL, *ALIASES, *(row.example for row in FAMILIES.values())])
@pytest.mark.parametrize("size", [0.0, 1e-44, 1e-38, 3.4028235e38])
def test_no_size_of_values_makes_an_infinity(text, size):
    values = np.outer([1, -0.7, 0.3, 0], np.linspace(-1, 1, 64)).astype(np.float32)
    values *= np.float32(size)
    found = format_of(text).quantize(values)
    assert np.isfinite(found).all() or "overflow=ieee" in text
