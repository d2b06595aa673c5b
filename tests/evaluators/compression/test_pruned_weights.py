"""Which weights and filters go, and how the rest makes up for them."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dse_evaluators.compression.narrow import (
    RIDGE,
    Pruned,
    narrow_network,
    prune_smallest,
    refit_layer,
    sparse,
    strongest,
)
from dse_evaluators.compression.reference import reference
from dse_evaluators.workloads.network import LayerWeights, NetworkStage, apply_layer, forward
from dse_evaluators.workloads.torch_scope import deterministic

DENSE = NetworkStage(name="fc", dense=True, padding=0, stride=1, pool=1, rectified=False)
CONV = NetworkStage(name="conv", dense=False, padding=1, stride=1, pool=1, rectified=False)


@pytest.fixture(autouse=True)
def as_in_the_evaluator():
    with deterministic():
        yield


def random(*sides, seed=0):
    return torch.randn(sides, generator=torch.Generator().manual_seed(seed))


def loss(stage, start, affine, inputs, wanted):
    """What the refit minimises, with the pull towards the start."""
    columns = inputs.flatten(1)
    pull = RIDGE * (columns - columns.mean(0)).square().sum(0).mean()
    off = (apply_layer(stage, affine, inputs) - wanted).square().sum()
    return float(off + pull * (affine.weight - start.weight).square().sum())


def test_the_smallest_weights_of_all_layers_become_zero():
    first = np.array([[3.0, -1.0], [0.5, 2.0]], dtype=np.float32)
    second = np.array([[-0.1, 4.0, 0.2, -5.0]], dtype=np.float32)
    thin = prune_smallest([first, second], 0.5)
    assert thin[0].tolist() == [[3.0, 0.0], [0.0, 2.0]]
    assert thin[1].tolist() == [[0.0, 4.0, 0.0, -5.0]]


@given(st.floats(0, 0.95), st.integers(1, 50))
def test_the_share_of_zeros_is_met_to_one_weight_even_among_equals(sparsity, count):
    (thin,) = prune_smallest([np.ones((1, count), dtype=np.float32)], sparsity)
    assert int((thin == 0).sum()) == round(sparsity * count)


def test_the_filters_with_the_largest_sums_of_magnitudes_stay_in_their_order():
    weight = np.array([[1.0, -1.0], [9.0, 0.0], [0.1, 0.1], [-3.0, 3.0]], dtype=np.float32)
    assert strongest(weight, 0.5).tolist() == [1, 3]


def test_at_least_one_filter_stays():
    assert strongest(np.ones((4, 2), dtype=np.float32), 0.0).tolist() == [0]


@pytest.mark.parametrize("sparse_fit", [False, True])
def test_a_layer_that_said_something_linear_is_found_again(sparse_fit):
    inputs = random(4000, 6)
    true = LayerWeights(random(3, 6, seed=1), random(3, seed=2))
    start = LayerWeights(true.weight + 1e-3 * random(3, 6, seed=3), torch.zeros(3))
    fit = refit_layer(DENSE, start, inputs, apply_layer(DENSE, true, inputs), sparse=sparse_fit)
    assert torch.allclose(fit.weight, true.weight, atol=1e-4)
    assert torch.allclose(fit.bias, true.bias, atol=1e-3)


@pytest.mark.parametrize("sparse_fit", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_a_small_step_away_from_the_fit_is_worse(sparse_fit, seed):
    inputs, wanted = random(50, 6), random(50, 3, seed=1)
    start = LayerWeights(random(3, 6, seed=2), torch.zeros(3))
    start.weight[:, ::2] = 0.0
    fit = refit_layer(DENSE, start, inputs, wanted, sparse=sparse_fit)
    moved = fit.weight + 0.05 * random(3, 6, seed=10 + seed) * (start.weight != 0)
    best = loss(DENSE, start, fit, inputs, wanted)
    assert best < loss(DENSE, start, LayerWeights(moved, fit.bias), inputs, wanted)
    assert best < loss(DENSE, start, start, inputs, wanted)


def test_a_sparse_fit_keeps_zeros_and_is_the_least_squares_of_the_rest():
    inputs, wanted = random(50, 6), random(50, 1, seed=1)
    start = LayerWeights(random(1, 6, seed=2), torch.zeros(1))
    start.weight[:, [0, 3]] = 0.0
    fit = refit_layer(DENSE, start, inputs, wanted, sparse=True)
    left = refit_layer(
        DENSE,
        LayerWeights(start.weight[:, [1, 2, 4, 5]], start.bias),
        inputs[:, [1, 2, 4, 5]],
        wanted,
    )
    assert fit.weight[0, [0, 3]].tolist() == [0.0, 0.0]
    # The ridge is a share of the mean variance of all inputs in one and of four in the other.
    assert torch.allclose(fit.weight[:, [1, 2, 4, 5]], left.weight, atol=2e-3)


def test_a_convolution_is_refitted_on_the_windows_that_it_slides_over():
    inputs = random(200, 2, 5, 5)
    true = LayerWeights(random(3, 2, 3, 3, seed=1), random(3, seed=2))
    start = LayerWeights(torch.zeros(3, 2, 3, 3), torch.zeros(3))
    fit = refit_layer(CONV, start, inputs, apply_layer(CONV, true, inputs))
    assert torch.allclose(fit.weight, true.weight, atol=0.05)
    assert torch.allclose(fit.bias, true.bias, atol=0.05)


def test_half_the_filters_are_really_gone():
    narrow = narrow_network(reference("digits-cnn"), 0.5)
    shapes = [tuple(affine.weight.shape) for affine in narrow.affines]
    assert shapes == [(16, 1, 3, 3), (32, 16, 3, 3), (32, 32, 3, 3), (64, 128), (10, 64)]


def test_with_all_filters_the_network_is_the_trained_one():
    whole = reference("digits-cnn")
    same = narrow_network(whole, 1.0)
    assert all(
        torch.equal(got.weight, had.weight) and torch.equal(got.bias, had.bias)
        for got, had in zip(same.affines, whole.affines, strict=True)
    )


@pytest.mark.parametrize(("keep", "sparsity"), [(0.5, 0.0), (1.0, 0.85)])
def test_refitting_wins_back_most_of_what_pruning_alone_loses(keep, sparsity):
    whole = reference("digits-cnn")
    pruned = sparse(whole, narrow_network(whole, keep), sparsity)
    alone = _without_refit(whole, pruned)
    assert _accuracy(whole, pruned.affines) >= 0.95
    assert _accuracy(whole, alone) <= 0.90


def _without_refit(whole, pruned: Pruned):
    """The trained weights in the same places."""
    cut, before = [], None
    for rows, affine, trained in zip(pruned.kept, pruned.affines, whole.affines, strict=True):
        weight = trained.weight[torch.tensor(rows)]
        if before is not None:
            pixels = weight.shape[1] // before[1]
            columns = (before[0][:, None] * pixels + np.arange(pixels)).ravel()
            weight = weight[:, torch.tensor(columns)]
        cut.append(LayerWeights(weight * (affine.weight != 0), trained.bias[torch.tensor(rows)]))
        before = rows, len(trained.weight)
    return cut


def _accuracy(whole, affines):
    said = forward(whole.network, affines, whole.images).argmax(dim=1)
    return float((said == whole.labels).double().mean())
