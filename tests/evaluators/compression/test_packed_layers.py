"""The size that is counted is the size that is written, and what is written can be read."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dse.errors import EvaluationError
from dse_evaluators.compression.compression_knobs import GRANULARITIES
from dse_evaluators.compression.quantize import quantise_weights
from dse_evaluators.compression.size import Shape, SparsityEncoding, size_bytes
from dse_evaluators.formats.words import FORMATS
from tests.evaluators.compression.packed_layers import pack_layer, unpack_layer


def tensor(seed, sides, zeros, name="int8", granularity="channel"):
    rng = np.random.default_rng(seed)
    weight = rng.normal(size=sides).astype(np.float32)
    weight[rng.random(sides) < zeros] = 0.0
    return quantise_weights(weight, FORMATS[name], granularity)


@given(
    seed=st.integers(0, 1000),
    sides=st.lists(st.integers(1, 9), min_size=2, max_size=4).map(tuple),
    zeros=st.sampled_from([0.0, 0.3, 0.6, 0.9, 0.97, 1.0]),
    name=st.sampled_from(list(FORMATS)),
    granularity=st.sampled_from(GRANULARITIES),
)
def test_a_layer_comes_back_from_exactly_the_bytes_that_were_counted(
    seed, sides, zeros, name, granularity
):
    layer = tensor(seed, sides, zeros, name, granularity)
    bias = np.random.default_rng(seed).normal(size=sides[0]).astype(np.float32)
    data = pack_layer(layer, bias)
    back, bias_back = unpack_layer(data)
    assert len(data) == size_bytes(layer)
    assert back.word == layer.word
    assert np.array_equal(back.words, layer.words)
    assert np.array_equal(back.scale, layer.scale)
    assert np.array_equal(back.values, layer.values)
    assert np.array_equal(bias_back, bias)


@pytest.mark.parametrize(
    ("zeros", "layout"),
    [(0.0, SparsityEncoding.DENSE), (0.5, SparsityEncoding.BITMAP), (0.97, SparsityEncoding.ROWS)],
)
def test_the_smallest_layout_is_taken(zeros, layout):
    layer = tensor(0, (64, 576), zeros)
    shape = Shape.of(layer)
    assert shape.layout is layout
    assert shape.weight_bytes(layout) == min(shape.weight_bytes(each) for each in SparsityEncoding)


def test_a_dense_int4_layer_is_as_large_as_by_hand():
    layer = tensor(0, (10, 7), 0.0, "int4")
    # 12 header; 10 scales and 10 biases of 4; 70 words of 4 bits.
    assert size_bytes(layer) == 12 + 40 + 40 + 35


def test_a_sparse_int8_layer_is_as_large_as_by_hand():
    weight = np.zeros((4, 100), dtype=np.float32)
    weight[1, 3] = weight[1, 99] = weight[3, 0] = 1.0
    layer = quantise_weights(weight, FORMATS["int8"], "tensor")
    # 12 header, 1 scale and 4 biases of 4; 4 counts of 7 bits; 3 columns of 7 bits; 3 words.
    assert size_bytes(layer) == 12 + 4 + 16 + 4 + 3 + 3


def test_a_scale_per_channel_is_the_channels_own_peak():
    weight = np.array([[1.27, 0.5], [-12.7, 0.5]], dtype=np.float32)
    by_channel = quantise_weights(weight, FORMATS["int8"], "channel")
    by_tensor = quantise_weights(weight, FORMATS["int8"], "tensor")
    assert by_channel.scale == pytest.approx([0.01, 0.1], rel=1e-6)
    assert by_tensor.scale == pytest.approx([0.1], rel=1e-6)
    assert by_channel.values[0].tolist() == pytest.approx([1.27, 0.5], rel=1e-6)


@pytest.mark.parametrize("name", ["fp32", "fp16", "bf16"])
def test_wide_floats_are_stored_without_scale(name):
    assert len(tensor(0, (3, 4), 0.0, name).scale) == 0


def test_a_filter_of_zeros_costs_no_word_and_comes_back_as_zeros():
    weight = np.array([[0.0, 0.0], [1.0, 2.0]], dtype=np.float32)
    assert quantise_weights(weight, FORMATS["int3"], "channel").values[0].tolist() == [0.0, 0.0]


def test_a_weight_that_is_no_number_cannot_be_quantised():
    with pytest.raises(EvaluationError, match="not a number"):
        quantise_weights(np.array([[np.nan, 1.0]], dtype=np.float32), FORMATS["int8"], "tensor")


def test_a_layer_without_weights_cannot_be_quantised():
    with pytest.raises(EvaluationError, match="empty"):
        quantise_weights(np.zeros((0, 4), dtype=np.float32), FORMATS["int8"], "tensor")
