"""The network that is compressed: its images, its shape and its training."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from dse_evaluators.compression.reference import reference
from dse_evaluators.workloads.digits import digits
from dse_evaluators.workloads.digits_cnn import TRAINING
from dse_evaluators.workloads.image_training import ImageTraining, train
from dse_evaluators.workloads.layers import DIGITS_CNN
from dse_evaluators.workloads.network import forward, stages


def rows(part):
    return {image.tobytes() for image in part.images}


def test_the_three_parts_share_no_image_and_leave_none_out():
    data = digits()
    parts = [rows(data.train), rows(data.calibration), rows(data.held_out)]
    # Every image of the package is different.
    assert len(parts[0] | parts[1] | parts[2]) == 1797
    assert sum(len(part) for part in parts) == 1797


def test_every_part_has_the_same_mix_of_digits():
    data = digits()
    mixes = [
        np.bincount(part.labels) / len(part.labels)
        for part in (data.train, data.calibration, data.held_out)
    ]
    assert np.ptp(mixes, axis=0).max() < 0.005


def test_the_network_has_the_tables_weights_and_pools_where_the_table_narrows():
    whole = reference("digits-cnn")
    assert [a.weight.numel() for a in whole.affines] == [x.weights for x in DIGITS_CNN]
    assert [stage.pool for stage in stages(DIGITS_CNN)] == [1, 2, 2, 1, 1]
    assert [stage.padding for stage in stages(DIGITS_CNN)] == [1, 1, 1, 0, 0]


def test_every_layer_has_the_outputs_that_the_table_counts():
    outputs = reference("digits-cnn").outputs
    pixels = [layer.output_height * layer.output_width * layer.filters for layer in DIGITS_CNN]
    assert [one[0].numel() for one in outputs] == pixels


@pytest.mark.slow
def test_training_is_the_same_twice_and_leaves_torch_as_it_was():
    short = ImageTraining(epochs=2)
    before = (torch.random.get_rng_state(), torch.get_num_threads())
    first, second = (
        train(DIGITS_CNN, digits().train, short),
        train(DIGITS_CNN, digits().train, short),
    )
    assert all(torch.equal(a.weight, b.weight) for a, b in zip(first, second, strict=True))
    assert torch.equal(torch.random.get_rng_state(), before[0])
    assert torch.get_num_threads() == before[1]
    assert not torch.are_deterministic_algorithms_enabled()


@pytest.mark.slow
def test_a_network_trained_from_scratch_reads_98_percent_of_unseen_digits():
    data = digits()
    affines = train(DIGITS_CNN, data.train, TRAINING)
    said = forward(stages(DIGITS_CNN), affines, torch.tensor(data.held_out.images)).argmax(dim=1)
    assert (said.numpy() == data.held_out.labels).mean() >= 0.98
