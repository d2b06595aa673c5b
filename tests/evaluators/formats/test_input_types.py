"""Tensors of other types than float32: rounded once, or refused in words."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
import torch

from dse.errors import EvaluationError
from dse_evaluators.formats.names import format_of

RNG = np.random.default_rng(0)
FORMATS = [
    "int4:group=32",
    "int8:channel,full-range,scale=fp32",
    "nf4",
    "mx:e2m1",
    "fp8_e4m3:block",
]


def nearest(values, kind):
    """Return the nearest numbers of a type, computed in float64; ties go to the even code."""
    codes = np.arange(2 ** (8 * np.dtype(kind).itemsize - 1)).astype(f"u{np.dtype(kind).itemsize}")
    with np.errstate(invalid="ignore"):  # signalling NaN among the codes
        table = codes.view(kind).astype(np.float64)
    table = table[np.isfinite(table)]  # in ascending order, without signs
    below = np.clip(np.searchsorted(table, np.abs(values), "right") - 1, 0, len(table) - 2)
    left, right = np.abs(values) - table[below], table[below + 1] - np.abs(values)
    up = (right < left) | ((right == left) & (below % 2 == 1))
    return np.copysign(table[below + up], values).astype(np.float32)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("fp16", np.float16),
        ("bf16", ml_dtypes.bfloat16),
        ("fp:e4m3", ml_dtypes.float8_e4m3fn),
        ("fp:e5m2", ml_dtypes.float8_e5m2),
    ],
)
def test_float64_is_rounded_once(text, kind):
    drawn = (RNG.uniform(-1, 1, 4096) * 400).astype(kind)
    ties = (drawn.astype(np.float64) + np.nextafter(drawn, kind(0)).astype(np.float64)) / 2
    values = np.concatenate([ties, ties * (1 + 2.0**-40), ties * (1 - 2.0**-40), ties / 3])
    found = format_of(text).quantize(values)
    assert np.array_equal(found, nearest(values, kind))
    assert not np.array_equal(found, format_of(text).quantize(values.astype(np.float32)))


def test_float64_beside_a_tie_goes_to_its_own_side():
    tie = 1 + 2.0**-11  # the middle of two numbers of fp16
    values = np.array([tie, tie + 2.0**-40, tie - 2.0**-40])
    assert format_of("fp16").quantize(values).tolist() == [1.0, 1 + 2.0**-10, 1.0]
    assert format_of("fp16").quantize(values.astype(np.float32)).tolist() == [1.0, 1.0, 1.0]


@pytest.mark.parametrize("text", FORMATS)
@pytest.mark.parametrize("kind", [ml_dtypes.bfloat16, np.float16, np.int8])
def test_narrow_types_have_the_values_that_float32_gives(text, kind):
    values = (RNG.standard_normal((128, 128)) * 20).astype(kind)
    form = format_of(text)
    assert np.array_equal(form.quantize(values), form.quantize(values.astype(np.float32)))


@pytest.mark.parametrize("kind", [torch.bfloat16, torch.float16, torch.float32])
def test_tensors_of_pytorch_have_the_values_that_float32_gives(kind):
    values = torch.from_numpy(RNG.standard_normal((4, 64))).to(kind).requires_grad_()
    form = format_of("int4:group=32")
    wanted = form.quantize(values.detach().float().numpy())
    assert np.array_equal(form.quantize(values), wanted)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (np.ones((2, 4)) + 1j, "values of type complex128 are not real numbers"),
        (torch.ones(2, 4, dtype=torch.complex64), "values of type complex64 are not real numbers"),
        (np.array([["a", "b"]]), "values of type <U1 are not real numbers"),
        (np.array([[None, 1.0]]), "values of type object are not real numbers"),
        (np.array([[1.0, -1e300]]), "1 of 2 values exceed the range of float32, such as -1e.300"),
        (np.zeros((0, 4)), "an empty tensor, of shape .0, 4., has no numbers to store"),
    ],
)
def test_what_is_no_tensor_of_numbers_is_refused_with_a_hint(values, words):
    with pytest.raises(EvaluationError, match=words) as caught:
        format_of("int8:channel").quantize(values)
    assert caught.value.hint
