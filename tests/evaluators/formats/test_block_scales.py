"""A scale for each block of a matrix, against the equations of the DeepSeek-V3 report."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from dse.errors import EvaluationError, SpecError
from dse_evaluators.compression.operators.gptq import Gptq
from dse_evaluators.compression.operators.reading import restore_tensor
from dse_evaluators.formats.elements import element_of, scale_bits
from dse_evaluators.formats.names import format_of
from dse_evaluators.hardware.macs import word_of

BLOCK = "fp8_e4m3:block=128x128,scale=fp32"


def drawn(shape, seed=0):
    """Weights whose blocks of 128 x 128 differ in size by up to 2^6."""
    rng = np.random.default_rng(seed)
    rows, columns = shape
    sizes = np.exp2(rng.integers(-6, 1, (-(-rows // 128), -(-columns // 128))))
    spread = np.kron(sizes, np.ones((128, 128)))[:rows, :columns]
    return (rng.standard_normal(shape) * spread).astype(np.float32)


def reference(weight):
    """Scales and numbers of DeepSeek-V3: the largest magnitude of a block becomes 448 of e4m3."""
    rows, columns = weight.shape
    scales = np.empty((-(-rows // 128), -(-columns // 128)), dtype=np.float32)
    numbers = np.empty_like(weight)
    for row, column in np.ndindex(*scales.shape):
        place = np.s_[128 * row : 128 * row + 128, 128 * column : 128 * column + 128]
        scale = np.abs(weight[place]).max() / np.float32(448)
        scales[row, column] = scale
        quotients = weight[place] * (np.float32(1) / scale)
        numbers[place] = quotients.astype(ml_dtypes.float8_e4m3fn).astype(np.float32)
    spread = scales.repeat(128, axis=0).repeat(128, axis=1)[:rows, :columns]
    return scales, numbers * spread


@pytest.mark.parametrize(("shape", "tail"), [((256, 384), ""), ((200, 300), ",tail=short")])
def test_scales_and_weights_are_those_of_the_report(shape, tail):
    weight = drawn(shape)
    scales, weights = reference(weight)
    chosen = format_of(BLOCK + tail)
    assert np.array_equal(chosen.quantize(weight), weights)
    stored = chosen.encode(weight).sides["scale"].view(np.float32)
    assert np.array_equal(stored, scales.ravel())


def test_a_block_keeps_small_weights_that_one_scale_for_the_tensor_loses():
    weight = drawn((256, 256))
    weight[:128, :128] *= np.float32(2.0**-18)
    blocks, tensor = (
        np.abs(format_of(text).quantize(weight) - weight)[:128, :128].max()
        for text in (BLOCK, "fp8_e4m3:tensor,scale=fp32")
    )
    assert blocks < tensor / 4


def test_sizes_have_a_scale_for_each_block():
    size = format_of(BLOCK).bits((256, 384))
    assert (size.payload, size.scale) == (8 * 256 * 384, 32 * 2 * 3)
    assert scale_bits(BLOCK, 256, 384) == 32 / 128**2
    short = format_of(f"{BLOCK},tail=short").bits((200, 300))
    assert (short.payload, short.scale) == (8 * 200 * 300, 32 * 2 * 3)


@pytest.mark.parametrize("text", [f"{BLOCK},tail=short", "int4:block=8x32,asym,tail=short"])
@pytest.mark.parametrize("shape", [(130, 70), (5,), (3, 4, 5, 6)])
def test_bytes_give_the_quantized_weights(text, shape):
    weight = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
    axis = tuple(range(1, weight.ndim)) or -1
    chosen = format_of(text)
    data = chosen.pack(chosen.encode(weight, axis))
    assert len(data) == chosen.bits(shape, axis).total_bytes
    read = chosen.decode(chosen.unpack(data, shape, axis))
    assert np.array_equal(read, chosen.quantize(weight, axis))


def test_a_block_of_one_row_is_a_group():
    weight = drawn((64, 256))
    group, block = (format_of(f"int4:{text}") for text in ("group=32", "block=1x32"))
    assert np.array_equal(group.quantize(weight), block.quantize(weight))


def test_gptq_has_the_scales_of_blocks_and_less_output_error():
    rng = np.random.default_rng(2)
    weight = rng.standard_normal((48, 64)).astype(np.float32)
    inputs = (rng.standard_normal((256, 8)) @ rng.standard_normal((8, 64))).astype(np.float32)
    text = "int4:block=32x32,tail=short"
    rounded = format_of(text).quantize(weight)
    found = restore_tensor(Gptq(text)(weight, inputs))
    errors = [np.square(inputs @ (one - weight).T).sum() for one in (found, rounded)]
    assert errors[0] < errors[1] / 2


def test_a_multiplier_reads_the_element_and_scales_once_for_each_width_of_a_block():
    assert element_of(BLOCK).name == "fp8_e4m3"
    assert word_of(BLOCK) == word_of("fp8_e4m3:group=128")


@pytest.mark.parametrize("shape", [(200, 256), (256, 200)])
def test_blocks_that_do_not_fit_are_refused_with_the_option_that_mends_it(shape):
    with pytest.raises(EvaluationError, match=r"200 .* no multiple of a block of 128") as caught:
        format_of(BLOCK).quantize(drawn(shape))
    assert "tail=short" in caught.value.hint


@pytest.mark.parametrize(
    ("text", "problem", "hint"),
    [
        ("fp8_e4m3:block=128", "block is '128'", "as in block=128x128"),
        ("fp8_e4m3:block=0x128", "the rows of block is 0", "'fp:e4m3,block=1x128'"),
        ("fp8_e4m3:block=8x8,channel", "has both 'channel' and 'block'", "leave one"),
    ],
)
def test_malformed_blocks_are_refused(text, problem, hint):
    with pytest.raises(SpecError, match=problem) as caught:
        format_of(text)
    assert hint in caught.value.hint
