"""Compressed layers are kept, and no more of them than there is room for."""

from __future__ import annotations

import numpy as np
import pytest

from dse.core.batch import Batch
from dse_evaluators.compression import model_layers
from dse_evaluators.compression.model_layers import WeightCache
from dse_evaluators.compression.recipe_evaluator import ByRecipe

KIB = 1024


class Maker:
    """Makes an array of 1 KiB, and counts."""

    def __init__(self):
        self.made = 0

    def __call__(self):
        self.made += 1
        return np.zeros(KIB // 4, dtype=np.float32)


@pytest.fixture
def maker():
    return Maker()


def test_what_was_made_is_given_again(maker):
    cache = WeightCache(4 * KIB)
    first = cache.get("conv1", "format int8", maker)
    assert cache.get("conv1", "format int8", maker) is first
    assert maker.made == 1


def test_another_recipe_or_layer_is_another_array(maker):
    cache = WeightCache(4 * KIB)
    cache.get("conv1", "format int8", maker)
    cache.get("conv1", "format int4", maker)
    cache.get("conv2", "format int8", maker)
    assert maker.made == 3


def test_what_was_not_used_for_longest_goes_first(maker):
    cache = WeightCache(2 * KIB)
    cache.get("a", "keep", maker)
    cache.get("b", "keep", maker)
    cache.get("a", "keep", maker)
    cache.get("c", "keep", maker)  # takes the place of b
    cache.get("a", "keep", maker)
    assert maker.made == 3
    cache.get("b", "keep", maker)
    assert maker.made == 4


def test_an_array_larger_than_the_cache_is_given_all_the_same(maker):
    assert WeightCache(1).get("a", "keep", maker).nbytes == KIB


def test_what_was_thrown_away_leaves_its_room(maker):
    cache = WeightCache(2 * KIB)
    for layer in "abcdefgh":
        cache.get(layer, "keep", maker)
    cache.get("g", "keep", maker)
    cache.get("h", "keep", maker)
    assert maker.made == 8


def test_metrics_are_the_same_bits_with_a_cache_that_holds_one_layer(monkeypatch):
    designs = Batch.of([{"bits": bits} for bits in ("int8:channel", "int2:channel")] * 2)
    evaluator = ByRecipe(model="digits-cnn", recipe="gptq {bits}")
    wanted = evaluator.evaluate(designs).columns
    small = WeightCache(1)
    monkeypatch.setattr(model_layers, "_weight_cache", lambda _: small)
    found = evaluator.evaluate(designs).columns
    assert {name: list(one) for name, one in found.items()} == {
        name: list(one) for name, one in wanted.items()
    }
