"""Workloads as matrix products: published sizes, and what pruning leaves."""

from __future__ import annotations

import numpy as np
import pytest

from dse_evaluators.accelerators.systolic.matrix_products import UniqueLayers
from dse_evaluators.workloads.catalogue import WORKLOADS
from dse_evaluators.workloads.layers import convolution, product

ONE = np.ones(1)


@pytest.mark.parametrize(
    ("workload", "weights", "source"),
    [
        ("resnet18", 11_689_512 - 9_600 - 1_000, "torchvision, less batch norm and bias"),
        ("resnet50", 25_557_032 - 53_120 - 1_000, "torchvision, less batch norm and bias"),
    ],
)
def test_a_resnet_has_the_published_number_of_weights(workload, weights, source):
    assert sum(layer.weights for layer in WORKLOADS[workload]) == weights, source


def test_resnet18_takes_the_published_number_of_multiply_accumulates():
    # He et al. 2016, table 1: 1.8e9
    assert round(sum(layer.macs for layer in WORKLOADS["resnet18"]) / 1e9, 1) == 1.8


@pytest.mark.parametrize("workload", WORKLOADS)
def test_equal_layers_are_counted_and_none_is_lost(workload):
    network = UniqueLayers(WORKLOADS[workload])
    macs = sum(layer.macs for layer in WORKLOADS[workload])
    assert network.total(network.products(ONE, ONE).macs).item() == macs


def test_pruning_narrows_each_layer_and_what_follows_it():
    network = UniqueLayers(WORKLOADS["digits-cnn"])
    product = network.products(np.array([0.3]), ONE)
    # of 32, 64, 64, 128 and 10 filters stay 10, 19, 19, 38 and, as the last are classes, 10;
    # the first dense layer loses four inputs for each channel
    assert product.n.ravel().tolist() == [10, 19, 19, 38, 10]
    assert product.k.ravel().tolist() == [9, 9 * 10, 9 * 19, 4 * 19, 38]


def test_at_least_one_filter_stays():
    product = UniqueLayers(WORKLOADS["digits-cnn"]).products(np.array([0.001]), ONE)
    assert product.n.ravel().tolist() == [1, 1, 1, 1, 10]


def test_a_batch_multiplies_pixels_and_not_weights():
    network = UniqueLayers(WORKLOADS["digits-cnn"])
    one, four = network.products(ONE, ONE), network.products(ONE, 4 * ONE)
    assert (four.m == 4 * one.m).all()
    assert (four.k == one.k).all()


def test_pruning_a_depthwise_layer_leaves_out_whole_channels():
    # 64 channels, each with a filter of its own: of 64 products 19 stay, each as it was
    network = UniqueLayers([convolution("depthwise", 4, 3, 64, 64, groups=64)])
    left = network.products(np.array([0.3]), ONE)
    assert left.copies.item() == 19
    assert (left.m.item(), left.k.item(), left.n.item()) == (16, 9, 1)
    assert left.macs.item() == 19 * 16 * 9


def test_pruning_another_grouped_layer_narrows_each_group():
    # 4 groups of 16 channels and 32 filters: round(.3 * 16) = 5 and round(.3 * 32) = 10 stay
    network = UniqueLayers([convolution("grouped", 4, 3, 64, 128, groups=4)])
    left = network.products(np.array([0.3]), ONE)
    assert left.copies.item() == 4
    assert (left.k.item(), left.n.item()) == (9 * 5, 10)


def test_a_batch_multiplies_products_of_two_activations():
    scores = UniqueLayers([product("scores", 8, 64, 8, copies=12, weighted=False)])
    one, four = scores.products(ONE, ONE), scores.products(ONE, 4 * ONE)
    assert (four.m.item(), four.copies.item()) == (one.m.item(), 4 * one.copies.item())
