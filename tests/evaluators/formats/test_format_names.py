"""Formats by text, and what is said of texts and tensors that cannot be."""

from __future__ import annotations

import numpy as np
import pytest

from dse.errors import EvaluationError, SpecError
from dse_evaluators.formats.families import FAMILIES
from dse_evaluators.formats.names import ALIASES, format_of


@pytest.mark.parametrize("text", [row.example for row in FAMILIES.values()])
def test_the_example_of_every_family_is_a_format(text):
    assert format_of(text).name == text


@pytest.mark.parametrize(("short", "long"), list(ALIASES.items()))
def test_an_alias_is_what_it_stands_for(short, long):
    values = np.random.default_rng(0).normal(size=(4, 64)).astype(np.float32)
    assert np.array_equal(format_of(short).quantize(values), format_of(long).quantize(values))


def test_spaces_and_capitals_do_not_count():
    assert format_of(" Int4: group=32, ASYM ") == format_of("int4:group=32,asym")


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("fp:e0m9", "did you mean 'fp:e1m9'?"),
        ("fp:e9m3", "did you mean 'fp:e8m3'?"),
        ("fp:e4m30", "did you mean 'fp:e4m20'?"),
        ("fp:e4m3,bias=500", "did you mean 'fp:e4m3,bias=124'?"),
        ("int8,scale=fp32", "settings follow a colon: int8:scale=fp32"),
        ("int4:group=0", "did you mean 'int4:group=1'?"),
        ("int1", "did you mean 'int2'?"),
        ("int99:channel", "did you mean 'int16'?"),
        ("mx:e2m1,block=0", "did you mean 'mx:e2m1,block=1'?"),
        ("mx:e2m1,scale=flor", "did you mean 'floor'?"),
        ("mx:e2m1,skale=floor", "did you mean 'scale'?"),
        ("posit:2,1", "did you mean 'posit:3,1'?"),
        ("posit:16,9", "did you mean 'posit:16,3'?"),
        ("adaptivfloat:4,9", "did you mean 'adaptivfloat:4,3'?"),
        ("nxfp:3", "did you mean 'nxfp:4'?"),
        ("bfp:m0,b16", "did you mean 'bfp:m1,b16'?"),
        ("bfp:m4", "as in 'bfp:m4,b16'"),
        ("fixed:8", "as in 'fixed:8.4'"),
        ("fixed:1.4", "did you mean 'fixed:2.4'?"),
        ("kmeans:9", "did you mean 'kmeans:8'?"),
        ("log:1", "did you mean 'log:2'?"),
        ("fp4", "did you mean 'fp4_e2m1' or 'fp:e4m3'?"),
        ("nvfp5", "did you mean 'nvfp4'?"),
        ("ternery", "did you mean 'ternary'?"),
        ("posits:8,1", "did you mean 'posit:8,1'?"),
        ("int4:asym,percentile=99", "asym goes with max or mse"),
        ("int4:percentile=0", "above 0 and up to 100"),
        ("int4:channel,group=32", "leave one of them out"),
        ("int4:seed=3", "add rounding=stochastic"),
        ("binary:rounding=stochastic", "leave rounding=stochastic out"),
        ("fp:e2m1,overflow=ieee", "overflow=sat"),
        ("fp:e8m7,bias=3", "did you mean 'fp:e8m7,bias=127'?"),
        ("nf4:double,scale=fp16", "leave one of them out"),
        ("adaptivfloat:8,1,variant=reference", "at least two exponent bits"),
    ],
)
def test_a_text_that_cannot_be_is_told_with_the_nearest_that_can(text, hint):
    with pytest.raises(SpecError) as caught:
        format_of(text)
    assert text.split(":")[0] in caught.value.problem
    assert hint in caught.value.hint


@pytest.mark.parametrize(
    "text", ["int8", "mx:e2m1", "nf4", "nxfp:4", "fp:e2m1", "kmeans:4", "nvfp4"]
)
def test_a_tensor_with_nan_is_an_error_that_counts_them(text):
    values = np.ones((2, 64), dtype=np.float32)
    values[1, 3:5] = np.nan
    with pytest.raises(EvaluationError, match="2 of 128 values are infinite or not a number"):
        format_of(text).quantize(values)


@pytest.mark.parametrize("text", ["fp:e4m3", "fp:e5m2", "posit:8,1", "bf16"])
def test_a_format_that_has_nan_keeps_it(text):
    found = format_of(text).quantize(np.array([1.0, np.nan], dtype=np.float32))
    assert np.isnan(found).tolist() == [False, True]


@pytest.mark.parametrize("text", [row.example for row in FAMILIES.values()])
@pytest.mark.parametrize("shape", [(0,), (3, 0), (0, 64)])
def test_an_empty_tensor_is_an_error(text, shape):
    with pytest.raises(EvaluationError, match="empty tensor"):
        format_of(text).quantize(np.zeros(shape, dtype=np.float32))


@pytest.mark.parametrize("text", ["int4:group=32", "mx:e2m1", "nvfp4", "nf4", "nxfp:4"])
def test_blocks_that_do_not_divide_are_an_error_that_says_how_to_go_on(text):
    with pytest.raises(EvaluationError, match="33 numbers along axis -1") as caught:
        format_of(text).bits((4, 33))
    assert "tail=short" in caught.value.hint


@pytest.mark.parametrize("axis", [2, -3, (0, 0), (0, 5)])
def test_an_axis_that_is_not_there_is_an_error(axis):
    with pytest.raises(EvaluationError, match="has no axes"):
        format_of("int8").quantize(np.ones((2, 2), dtype=np.float32), axis)
