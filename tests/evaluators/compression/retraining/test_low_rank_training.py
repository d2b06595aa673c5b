"""Layers of low rank: their ranks, and what is left of a network of them."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from dse_evaluators.compression.operators.reading import restore_tensor
from dse_evaluators.compression.retraining.low_rank import (
    factor_weights,
    factored_weights,
    product,
    ranks_of,
)

CONVOLUTION = (64, 32, 3, 3)
MATRIX = (128, 256)


@pytest.mark.parametrize("density", [0.05, 0.1, 0.3, 0.7, 1.0])
@pytest.mark.parametrize(
    ("shape", "factoring"),
    [(MATRIX, "svd"), (CONVOLUTION, "svd"), (CONVOLUTION, "tucker-2"), (MATRIX, "tucker-2")],
)
def test_the_ranks_leave_no_more_than_their_share(shape, factoring, density):
    assert factored_weights(shape, density, factoring) <= density * np.prod(shape)


def test_the_rank_of_two_factors_is_by_hand():
    # 0.1 of 64 x 288 is 1843.2; each rank costs 64 + 288 = 352.
    assert ranks_of(CONVOLUTION, 0.1, "svd") == (5,)
    assert factored_weights(CONVOLUTION, 0.1, "svd") == 5 * 352


def test_one_rank_more_would_be_too_many():
    first, second = ranks_of(CONVOLUTION, 0.1, "tucker-2")
    more = (first + 1) * (second + 1) * 9 + 64 * (first + 1) + 32 * (second + 1)
    assert more > 0.1 * np.prod(CONVOLUTION)


@pytest.mark.parametrize("factoring", ["svd", "tucker-2"])
def test_the_factors_that_are_trained_stand_for_the_weights_that_are_stored(factoring):
    weight = torch.randn(CONVOLUTION, generator=torch.Generator().manual_seed(0)).numpy()
    record = factor_weights(weight, 0.2, factoring)
    parts = [torch.tensor(restore_tensor(part)) for part in record.parts]
    stored = restore_tensor(record)
    assert sum(part.numel() for part in parts) == factored_weights(CONVOLUTION, 0.2, factoring)
    assert np.allclose(product(parts, CONVOLUTION).numpy(), stored, atol=1e-5)


@pytest.mark.parametrize("factoring", ["svd", "tucker-2"])
def test_cutting_the_rank_twice_cuts_nothing_more(factoring):
    weight = torch.randn(CONVOLUTION, generator=torch.Generator().manual_seed(0)).numpy()
    once = restore_tensor(factor_weights(weight, 0.2, factoring))
    assert np.allclose(restore_tensor(factor_weights(once, 0.2, factoring)), once, atol=1e-5)
