"""Operators in a row, as a text says them."""

from __future__ import annotations

import numpy as np
import pytest

from dse.errors import EvaluationError, SpecError
from dse_evaluators.compression.operators import masks, prune, svd
from dse_evaluators.compression.operators.bloomier import Bloomier
from dse_evaluators.compression.operators.dense import FP16, Dense
from dse_evaluators.compression.operators.gptq import Gptq
from dse_evaluators.compression.operators.huffman import Entropy
from dse_evaluators.compression.operators.reading import restore_tensor
from dse_evaluators.compression.operators.recipe import compress_layer
from dse_evaluators.compression.operators.record import Record
from dse_evaluators.compression.operators.sparse import SparseStore

RECIPES = [
    "format int4:group=32,asym",
    "huffman kmeans:4",
    "prune 0.1 > format fp16",
    "prune 0.1 > huffman kmeans:4",
    "n-of-m 2/4 > format int8",
    "blocks 0.5/4x4 > format fp16",
    "n-of-m 2/4 > prune 0.25 > huffman kmeans:3",
    "prune 0.1 > bloomier 4/8",
    "prune 0.1 > xor 24/240",
    "xor 16/32",
    "low-rank-mask 4/0.2 > xor 24/96",
    "low-rank-mask 4/0.2 > format fp16",
    "gptq int3:group=32",
    "gptq-act-order int3:group=32,asym",
    "awq int3:group=32",
    "svd 8/fp16",
    "whitened 8/int8:channel",
    "corrected 8/int2:group=32,asym",
]


@pytest.mark.parametrize("recipe", RECIPES)
def test_a_recipes_record_comes_back_from_as_many_bytes_as_it_counts(layer, inputs, recipe):
    record = compress_layer(recipe, layer, inputs)
    data = record.to_bytes()
    assert 8 * len(data) == record.cost.total < 32 * layer.size
    assert np.array_equal(restore_tensor(Record.from_bytes(data)), restore_tensor(record))


@pytest.mark.parametrize(
    ("recipe", "same"),
    [
        ("format nf4", lambda w, _: Dense("nf4")(w)),
        ("prune 0.1 > huffman kmeans:4", lambda w, _: SparseStore(Entropy("kmeans:4"))(prune.by_layer(w, 0.1))),
        ("n-of-m 2/4 > format fp16", lambda w, _: SparseStore(FP16, masks.of_m(2, 4))(prune.n_of_m(w, 2, 4))),
        ("prune 0.1 > bloomier 4/8", lambda w, _: Bloomier(value_bits=4, cell_bits=8)(prune.by_layer(w, 0.1))),
        ("gptq int4", Gptq("int4")),
        ("gptq-act-order int4", Gptq("int4", act_order=True)),
        ("whitened 8/fp16", lambda w, x: svd.whiten_weights(w, x, 8, FP16)),
    ],
)  # fmt: skip
def test_a_recipe_is_what_its_operators_do(layer, inputs, recipe, same):
    assert compress_layer(recipe, layer, inputs) == same(layer, inputs)


@pytest.mark.parametrize("recipe", ["tucker-2 4x3/fp16", "cp 5/int8:channel"])
def test_a_convolutions_record_comes_back_from_its_bytes(recipe):
    weight = np.random.default_rng(0).normal(size=(8, 6, 3, 3)).astype(np.float32)
    record = compress_layer(recipe, weight)
    data = record.to_bytes()
    assert 8 * len(data) == record.cost.total
    given = restore_tensor(Record.from_bytes(data))
    assert given.shape == weight.shape
    np.testing.assert_array_equal(given, restore_tensor(record))


def test_a_dense_layer_is_no_convolution(layer):
    with pytest.raises(EvaluationError, match="convolution"):
        compress_layer("tucker-2 4x3/fp16", layer)


@pytest.mark.parametrize(
    ("recipe", "message"),
    [
        ("prun 0.1 > format fp16", "'prun' is unknown"),
        ("prune 0.1", "'prune' sets weights to zero, and no operator after it stores them"),
        ("format fp16 > format fp16", "'format' stores the weights, so no operator can follow it"),
        ("prune half > format fp16", "'half' is not a fraction"),
        ("n-of-m 2 > format fp16", "'2' is not of the form '2/4'"),
        ("svd eight/fp16", "'eight' is no whole number"),
        ("prune 0.1 > awq int4", "cannot follow a pruning operator"),
        ("format int44", "int44"),
    ],
)
def test_a_recipe_that_cannot_be_is_refused(layer, inputs, recipe, message):
    with pytest.raises(SpecError, match=message):
        compress_layer(recipe, layer, inputs)


def test_operators_that_need_inputs_say_so(layer):
    with pytest.raises(SpecError, match="needs calibration inputs"):
        compress_layer("gptq int4", layer)
