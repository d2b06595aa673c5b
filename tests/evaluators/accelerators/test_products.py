"""Workloads as matrix products: published sizes, and what pruning leaves."""

from __future__ import annotations

import numpy as np
import pytest

from dse_evaluators.accelerators.products import Network
from dse_evaluators.workloads.catalogue import WORKLOADS

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
    network = Network(WORKLOADS[workload])
    macs = sum(layer.macs for layer in WORKLOADS[workload])
    assert network.total(network.products(ONE, ONE).macs).item() == macs


def test_pruning_narrows_each_layer_and_what_follows_it():
    network = Network(WORKLOADS["digits-cnn"])
    product = network.products(np.array([0.3]), ONE)
    # of 32, 64, 64, 128 and 10 filters stay 10, 19, 19, 38 and, as the last are classes, 10;
    # the first dense layer loses four inputs for each channel
    assert product.n.ravel().tolist() == [10, 19, 19, 38, 10]
    assert product.k.ravel().tolist() == [9, 9 * 10, 9 * 19, 4 * 19, 38]


def test_at_least_one_filter_stays():
    product = Network(WORKLOADS["digits-cnn"]).products(np.array([0.001]), ONE)
    assert product.n.ravel().tolist() == [1, 1, 1, 1, 10]


def test_a_batch_multiplies_pixels_and_not_weights():
    network = Network(WORKLOADS["digits-cnn"])
    one, four = network.products(ONE, ONE), network.products(ONE, 4 * ONE)
    assert (four.m == 4 * one.m).all()
    assert (four.k == one.k).all()
