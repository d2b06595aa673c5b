"""Whether a recipe suits a layer is known from the layer's shape."""

from __future__ import annotations

import pytest

from dse.errors import EvaluationError, SpecError
from dse_evaluators.compression.drawn_matrix import DrawnMatrix
from dse_evaluators.compression.layer_fit import check_fit
from dse_evaluators.compression.recipe_evaluator import ByRecipe
from dse_evaluators.compression.recipe_size import Size


@pytest.mark.parametrize(
    ("recipe", "told"),
    [
        ("format int4:group=7", "no multiple of a block of 7"),
        ("svd 17/fp16", "a rank of 17 is not in 1 to 16"),
        ("corrected 0/int2", "a rank of 0"),
        ("n-of-m 4/2 > format int8", "4 of 2 weights"),
        ("n-of-m 2/7 > format int8", "no multiple of 7"),
        ("blocks 0.5/5x4 > format int8", "no whole number of blocks"),
        ("prune 0.5 > xor 0/240", "seeds have 1 to 32 bits"),
        ("prune 0.5 > bloomier 9/4", "cells of 4 bits"),
    ],
)
def test_what_does_not_suit_the_shape_is_told(recipe, told):
    with pytest.raises(EvaluationError, match=told):
        check_fit(recipe, (16, 8, 3, 3))


@pytest.mark.parametrize(
    "recipe",
    ["keep", "format int4:group=9", "svd 16/fp16", "prune 0.5 > format int4:group=7,tail=short",
     "n-of-m 2/4 > format fp16", "blocks 0.5/4x4 > huffman kmeans:4", "prune 0.1 > xor 24/240"],
)  # fmt: skip
def test_what_suits_the_shape_is_left_to_the_run(recipe):
    check_fit(recipe, (16, 8, 3, 3))


@pytest.mark.parametrize("evaluator", [ByRecipe, Size])
def test_ranks_of_which_a_layer_has_none_are_told_with_the_layer(evaluator):
    chosen = evaluator(model="digits-cnn", recipe="svd {rank}/fp16")
    chosen.check_values({"rank": (1, 400)})
    with pytest.raises(SpecError, match=r"conv1\.weight, 'svd 400/fp16'"):
        chosen.check_values({"rank": (10, 400)})


def test_a_matrix_knows_its_own_ranks():
    with pytest.raises(SpecError, match="a rank of 99"):
        DrawnMatrix(rows=32, columns=32, recipe="svd 99/fp32").check_values({})
