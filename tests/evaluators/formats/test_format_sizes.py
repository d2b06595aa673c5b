"""Bits by hand: codes, scales, zero points, codebooks."""

from __future__ import annotations

import numpy as np
import pytest

from dse_evaluators.formats.names import format_of

NUMBERS = 384 * 512


# Of a tensor of 384 rows of 512: payload, scales, zero points, codebook.
@pytest.mark.parametrize(
    ("text", "payload", "scale", "zero_point", "codebook"),
    [
        ("fp32", 32, 0, 0, 0),
        ("fp:e4m3", 8, 0, 0, 0),
        ("int8", 8, 16, 0, 0),
        ("int8:channel", 8, 384 * 16, 0, 0),
        ("int4:group=32", 4, 384 * 16 * 16, 0, 0),
        ("int4:group=32,asym", 4, 384 * 16 * 16, 384 * 16 * 4, 0),
        ("int4:group=32,scale=fp32", 4, 384 * 16 * 32, 0, 0),
        ("mx:e4m3", 8, 384 * 16 * 8, 0, 0),
        ("mx:e2m1", 4, 384 * 16 * 8, 0, 0),
        ("nvfp4", 4, 384 * 32 * 8 + 32, 0, 0),
        ("nvfp4:single", 4, 384 * 32 * 8, 0, 0),
        ("msfp12", 4, 384 * 32 * 8, 0, 0),
        ("posit:8,1", 8, 0, 0, 0),
        ("adaptivfloat:8,3", 8, 8, 0, 0),
        ("nxfp:4", 4, 384 * 16 * 11, 0, 0),
        ("nxfp:4,micro=off", 4, 384 * 16 * 10, 0, 0),
        ("nf4", 4, 384 * 8 * 32, 0, 0),
        ("nf4:double", 4, 384 * 8 * 8 + 12 * 32 + 32, 0, 0),
        ("log:4", 4, 8, 0, 0),
        ("ternary", 2, 384 * 16, 0, 0),
        ("binary", 1, 384 * 16, 0, 0),
        ("fixed:8.4", 8, 0, 0, 0),
        ("kmeans:4", 4, 0, 0, 16 * 32),
    ],
)
def test_the_bits_are_those_that_the_definition_adds_up_to(
    text, payload, scale, zero_point, codebook
):
    size = format_of(text).bits((384, 512))
    assert size.payload == payload * NUMBERS
    assert (size.scale, size.zero_point, size.codebook) == (scale, zero_point, codebook)
    assert (size.index, size.numbers) == (0, NUMBERS)
    assert size.total == payload * NUMBERS + scale + zero_point + codebook


# Print: MX 8.25, 6.25 and 4.25, NVFP4 4.5, MSFP-12 4.5, QLoRA 4.127 bits a number.
@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("mxfp8", 8.25),
        ("mxfp6", 6.25),
        ("mxfp4", 4.25),
        ("nvfp4:single", 4.5),
        ("msfp12", 4.5),
        ("msfp16", 8.5),
    ],
)
def test_the_bits_of_a_number_are_those_in_print(text, printed):
    assert format_of(text).bits((256, 256)).bits_per_number == printed


def test_double_quantization_takes_the_bits_in_print():
    assert format_of("nf4:double").bits((4096, 4096)).bits_per_number == pytest.approx(
        4.127, abs=5e-4
    )


# Three rows of 40: two blocks each, the second of 8; what fills it up is not stored.
def test_a_short_block_has_a_scale_of_its_own_and_no_filling():
    chosen = format_of("mx:e2m1,tail=short")
    size = chosen.bits((3, 40))
    assert (size.payload, size.scale) == (3 * 40 * 4, 3 * 2 * 8)
    values = np.random.default_rng(0).normal(size=(3, 40)).astype(np.float32)
    data = chosen.pack(chosen.encode(values))
    assert len(data) == 66
    assert np.array_equal(chosen.decode(chosen.unpack(data, (3, 40))), chosen.quantize(values))
