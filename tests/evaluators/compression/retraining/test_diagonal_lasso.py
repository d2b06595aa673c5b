"""A group lasso on the diagonals of packed layers, and how many rotations it leaves."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from dse.core.batch import Batch
from dse_evaluators.compression.retraining.diagonal_lasso import Diagonals
from dse_evaluators.compression.retraining.retrained_networks import DIGITS_MLP, Circumstances
from dse_evaluators.compression.retraining.retraining_knobs import knobs_of
from dse_evaluators.compression.retraining.retraining_runner import train_network
from dse_evaluators.private_inference.packed_convolution import PackedConvolution, rotation_counts
from dse_evaluators.private_inference.packed_layer import LayerShape
from dse_evaluators.workloads.layers import DIGITS_CNN
from dse_evaluators.workloads.packed_diagonals import label_diagonals


def used_rotations(layer, weight, slots):
    """Return how many diagonals with a rotation have a weight."""
    one = Diagonals.of(layer, slots)
    norms = one.measure_norms(weight)
    return int(sum(norms[at] > 0 for at in range(len(norms)) if at % one.held))


def test_pairs_of_equal_distance_are_a_diagonal_of_their_output_ciphertext():
    labels = label_diagonals(channels=4, filters=4, held=2)
    assert labels.tolist() == [[0, 1, 0, 1], [1, 0, 1, 0], [2, 3, 2, 3], [3, 2, 3, 2]]


@pytest.mark.parametrize("slots", [64, 1024, 4096])
@pytest.mark.parametrize("layer", DIGITS_CNN, ids=lambda layer: layer.name)
def test_a_layer_has_the_rotations_that_private_convolution_counts(layer, slots):
    assert Diagonals.of(layer, slots).rotations == rotation_counts(LayerShape.of(layer), slots)[1]


def test_scaling_changes_the_weights_of_one_diagonal_and_never_of_distance_zero():
    one = Diagonals(torch.from_numpy(label_diagonals(4, 4, 2)), 2, 2)
    found = one.scale(torch.ones(4, 4, 1, 1), torch.tensor([0.0, 2.0, 0.0, 3.0]))[..., 0, 0]
    assert found.tolist() == [[1, 2, 1, 2], [2, 1, 2, 1], [1, 3, 1, 3], [3, 1, 3, 1]]


def test_a_trained_layer_needs_the_rotations_that_are_kept():
    design = {"method": "diagonals", "diagonals_kept": 0.2, "slots": 512, "penalty": 0.5}
    trained = train_network(
        Circumstances(model="digits-mlp"), knobs_of({**design, "epochs": 1}, {})
    )
    used = used_rotations(DIGITS_MLP[1], trained.affines[1].weight, 512)
    assert used == np.ceil(0.2 * rotation_counts(LayerShape.of(DIGITS_MLP[1]), 512)[1])
    assert all(bool((trained.affines[place].weight != 0).all()) for place in (0, 2))


def test_private_convolution_counts_the_rotations_that_are_kept():
    shape = {"height": 1, "width": 1, "channels": 64, "filters": 300}
    designs = Batch.of([{"slots": 2048, "diagonals_kept": 0.2}])
    found = PackedConvolution(shape=shape).evaluate(designs)
    assert found.columns["output_rotations"][0] == np.ceil(0.2 * 511)
