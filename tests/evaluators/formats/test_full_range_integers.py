"""Integers with the scales of deployed models, bit for bit against torchao's own functions."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch

from dse.errors import SpecError
from dse_evaluators.formats.names import format_of

ROWS, COLUMNS = 2048, 256


@pytest.fixture(scope="module")
def torchao_primitives():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip("torchao.quantization.quant_primitives")


@pytest.fixture(scope="module")
def weights():
    """524,288 values: rows of all sizes, heavy tails, one sign, ties on the grid, zeros, a peak alone."""
    rng = np.random.default_rng(21)
    table = rng.standard_normal((ROWS, COLUMNS)) * np.exp2(rng.integers(-12, 12, (ROWS, 1)))
    table[::5] = rng.standard_t(1.5, table[::5].shape)
    table[1::7] = np.abs(table[1::7])
    table[2::7] = -np.abs(table[2::7])
    table[3::11] = rng.integers(-15, 16, table[3::11].shape) / 2
    table[4::13] = 0
    table[5::13, 1:] = 0
    table[6::13, ::3] = -0.0
    return table.astype(np.float32)


def torchao_values(primitives, values, *, bits, block, symmetric):
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if symmetric else (0, 2**bits - 1)
    kind = primitives.MappingType.SYMMETRIC if symmetric else primitives.MappingType.ASYMMETRIC
    target = torch.int8 if symmetric else torch.uint8
    tensor = torch.from_numpy(values)
    scale, zero = primitives.choose_qparams_affine(
        tensor, kind, block, target, low, high, scale_dtype=torch.float32
    )
    codes = primitives.quantize_affine(tensor, block, scale, zero, target, low, high)
    back = primitives.dequantize_affine(codes, block, scale, zero, target, low, high)
    return codes.numpy(), scale.numpy(), zero.numpy(), back.numpy()


@pytest.mark.parametrize("group", [32, COLUMNS, None], ids=["group", "channel", "tensor"])
@pytest.mark.parametrize("symmetric", [True, False], ids=["symmetric", "asymmetric"])
@pytest.mark.parametrize("bits", [2, 4, 8])
def test_every_value_code_and_scale_is_that_of_torchao(
    bits, symmetric, group, weights, torchao_primitives
):
    assert weights.size == 524_288
    block = (1, group) if group else weights.shape
    codes, scale, zero, back = torchao_values(
        torchao_primitives, weights, bits=bits, block=block, symmetric=symmetric
    )
    span = {32: "group=32", COLUMNS: "channel", None: "tensor"}[group]
    sign = "" if symmetric else ",asym"
    form = format_of(f"int{bits}:{span},full-range,scale=fp32{sign}")
    encoded = form.encode(weights)
    mask = 2**bits - 1
    assert np.array_equal(encoded.codes, codes.ravel().astype(np.int64) & mask)
    assert np.array_equal(encoded.sides["scale"], scale.ravel().view(np.uint32))
    assert symmetric or np.array_equal(encoded.sides["zero"], zero.ravel())
    assert np.array_equal(form.quantize(weights), back)


def test_the_largest_magnitude_is_half_a_step_beyond_the_largest_code():
    values = np.array([[-7.5, 7.5, 1.0, 0.0]], dtype=np.float32)
    form = format_of("int4:channel,full-range,scale=fp32")
    encoded = form.encode(values)
    assert encoded.sides["scale"].view(np.float32).tolist() == [1.0]
    assert form.decode(encoded).tolist() == [[-8.0, 7.0, 1.0, 0.0]]


@pytest.mark.parametrize("text", ["int8:full-range,full", "int8:full-range,rms"])
def test_full_range_excludes_other_rules_of_the_scale(text):
    with pytest.raises(SpecError, match="has both"):
        format_of(text)


def test_floats_have_no_full_range():
    with pytest.raises(SpecError, match="no option 'full-range'"):
        format_of("fp:e4m3,channel,full-range")
