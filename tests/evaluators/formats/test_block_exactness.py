"""MX and NVFP4 blocks bit for bit, against torchao and gfloat."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch

from dse_evaluators.formats.names import format_of

ELEMENTS = ("e4m3", "e5m2", "e3m2", "e2m3", "e2m1")
RULES = ("floor", "ceil", "even", "rceil")


@pytest.fixture(scope="module")
def torchao_mx():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip("torchao.prototype.mx_formats.mx_tensor")


@pytest.fixture(scope="module")
def torchao_nvfp4(torchao_mx):
    return pytest.importorskip("torchao.prototype.mx_formats.nvfp4_tensor")


def element(name):
    return {
        "e4m3": torch.float8_e4m3fn,
        "e5m2": torch.float8_e5m2,
        "e3m2": "fp6_e3m2",
        "e2m3": "fp6_e2m3",
        "e2m1": torch.float4_e2m1fn_x2,
    }[name]


def differing(ours, theirs):
    return np.count_nonzero(ours.view(np.uint32) != theirs.view(np.uint32))


@pytest.mark.slow
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("name", ELEMENTS)
def test_every_block_has_the_scale_and_the_bits_that_torchao_gives(name, rule, blocks, torchao_mx):
    mode = torchao_mx.ScaleCalculationMode(rule)
    tensor = torchao_mx.MXTensor.to_mx(torch.from_numpy(blocks), element(name), 32, mode)
    chosen = format_of(f"mx:{name},scale={rule}")
    exponents = tensor.scale.view(torch.uint8).numpy().ravel()
    assert blocks.size >= 1_000_000
    assert np.array_equal(chosen.encode(blocks).sides["exponent"], exponents)
    assert differing(chosen.quantize(blocks), tensor.dequantize(torch.float32).numpy()) == 0


@pytest.mark.slow
@pytest.mark.parametrize("size", [1e-3, 0.05, 1.0, 1e4])
def test_nvfp4_on_two_levels_has_the_bits_that_torchao_gives(size, torchao_nvfp4):
    rng = np.random.default_rng(5)
    spread = np.exp2(rng.integers(-6, 7, (2048, 1)))
    values = (rng.standard_t(3, (2048, 128)) * spread * size).astype(np.float32)
    scale = torchao_nvfp4.per_tensor_amax_to_scale(torch.tensor(np.abs(values).max()))
    tensor = torchao_nvfp4.NVFP4Tensor.to_nvfp4(torch.from_numpy(values), per_tensor_scale=scale)
    theirs = tensor.dequantize(torch.float32).numpy()
    assert differing(format_of("nvfp4").quantize(values), theirs) == 0


@pytest.mark.slow
def test_nvfp4_without_a_tensor_scale_has_the_bits_that_torchao_gives(torchao_nvfp4):
    values = np.random.default_rng(6).standard_t(2, (8192, 128)).astype(np.float32)
    theirs = torchao_nvfp4.NVFP4Tensor.to_nvfp4(torch.from_numpy(values)).dequantize(torch.float32)
    assert differing(format_of("nvfp4:single").quantize(values), theirs.numpy()) == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("mx:int8,full", "format_info_mxint8"),
        ("mx:e2m1", "format_info_mxfp4_e2m1"),
        ("mx:e4m3", "format_info_mxfp8_e4m3"),
        ("mx:e3m2", "format_info_mxfp6_e3m2"),
    ],
)
def test_blocks_are_rounded_as_gfloat_rounds_them(text, name):
    gfloat = pytest.importorskip("gfloat")
    info = getattr(pytest.importorskip("gfloat.formats"), name)
    rng = np.random.default_rng(7)
    spread = np.exp2(rng.integers(-90, 90, (400, 1)))
    values = (rng.standard_normal((400, 32)) * spread).astype(np.float32)
    theirs = np.stack(
        [gfloat.quantize_block(info, row, gfloat.compute_scale_amax) for row in values.astype("f8")]
    )
    assert np.array_equal(format_of(text).quantize(values), theirs.astype(np.float32))
