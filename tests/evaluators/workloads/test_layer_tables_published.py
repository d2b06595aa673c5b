"""The layer tables have the parameters and products that are published of them."""

from __future__ import annotations

import pytest

from dse_evaluators.clusters.two_streams.model_table import model_of
from dse_evaluators.workloads.catalogue import WORKLOADS, layers_of, table_of

PARAMETERS = [
    ("resnet18", 11_689_512, "torchvision"),
    ("resnet50", 25_557_032, "torchvision"),
    ("resnet50-v1", 25_557_032, "torchvision: where it strides changes no weight"),
    ("resnet50-v1.5", 25_557_032, "torchvision"),
    ("mobilenetv1", 4_231_976, "Keras, trainable"),
    ("mobilenetv2", 3_504_872, "torchvision"),
    ("vgg16", 138_357_544, "torchvision"),
    ("alexnet", 60_965_224, "Caffe's model of the two cards"),
    ("vit-b16", 86_567_656, "torchvision"),
    ("bert-base", 109_482_240, "the published checkpoint, with its pooler"),
    ("gpt2", 124_439_808, "the published checkpoint"),
    ("llama2-7b", 6_738_415_616, "the published checkpoint"),
    ("llama2-13b", 13_015_864_320, "the published checkpoint"),
    ("llama2-70b", 68_976_648_192, "the published checkpoint"),
    ("llama3-8b", 8_030_261_248, "the published checkpoint"),
    ("llama3-70b", 70_553_706_496, "the published checkpoint"),
    ("llama3-405b", 405_853_388_800, "the published checkpoint"),
    ("sd-unet", 859_520_964, "the published checkpoint of version 1.5"),
    ("mnist-cnn", 33_194, "the network that is trained here"),
]

MACS = [
    # the unit is the last digit that the source prints
    ("resnet18", 1.8e9, 1e8, "He et al. 2016, table 1"),
    ("resnet50-v1", 3.9e9, 1e8, "Sze et al.: Efficient Processing of Deep Neural Networks, 2017"),
    ("resnet50-v1.5", 4.09e9, 1e7, "torchvision"),
    ("mobilenetv1", 569e6, 1e6, "Howard et al. 2017, table 4"),
    ("mobilenetv2", 0.30e9, 1e7, "torchvision"),
    ("vgg16", 15.5e9, 1e8, "Sze et al. 2017"),
    ("alexnet", 724e6, 1e6, "Sze et al. 2017"),
    ("vit-b16", 17.6e9, 1e8, "torchvision"),
]


@pytest.mark.parametrize(("workload", "parameters", "source"), PARAMETERS)
def test_a_model_has_the_published_number_of_parameters(workload, parameters, source):
    assert table_of(workload).parameters == parameters, source


@pytest.mark.parametrize(("workload", "macs", "unit", "source"), MACS)
def test_a_model_takes_the_published_number_of_products(workload, macs, unit, source):
    found = sum(layer.macs for layer in WORKLOADS[workload])
    assert abs(found - macs) <= unit / 2, source


def test_without_padding_resnet50_takes_a_tenth_less_than_with_it():
    # SCALE-Sim's topology file leaves the images as they are: 3.48e9 of 3.86e9
    share = table_of("resnet50").macs / table_of("resnet50-v1").macs
    assert share == pytest.approx(0.902, abs=0.001)


@pytest.mark.parametrize(
    ("workload", "weights", "macs"), [("alexnet", 2.3e6, 666e6), ("vgg16", 14.7e6, 15.3e9)]
)
def test_the_convolutions_alone_are_those_of_eyeriss(workload, weights, macs):
    # Chen et al.: Eyeriss, ISSCC 2016, introduction
    convolutions = [layer for layer in layers_of(workload) if layer.filter_height > 1]
    assert sum(layer.weights for layer in convolutions) == pytest.approx(weights, abs=0.5e5)
    assert sum(layer.macs for layer in convolutions) == pytest.approx(macs, rel=0.004)


def test_the_weighted_products_of_the_unet_are_those_that_a_counter_found():
    # BK-SDM's issue 53 prints what thop counts: products with weights, and four operations for
    # each number that a layer norm gives; attention's own products it does not see
    layers = layers_of("sd-unet")
    normed = sum(
        3 * layer.height * layer.channels for layer in layers if layer.name.endswith("self-qkv")
    )
    weighted = sum(layer.macs for layer in layers if layer.weighted)
    assert weighted + 4 * normed == 338_749_194_240


@pytest.mark.parametrize(("workload", "theirs"), [("dlrm-a", "dlrm-a"), ("dlrm-b", "dlrm-i")])
def test_a_recommender_has_the_parameters_that_madmax_counts(workload, theirs):
    # test_two_streams_reference compares these models with the runs of MAD-Max
    assert table_of(workload).parameters == model_of(theirs).weights


@pytest.mark.parametrize(("workload", "mflop"), [("dlrm-a", 638), ("dlrm-b", 60)])
def test_a_recommender_takes_the_operations_that_are_told_of_it(workload, mflop):
    # Hsia et al. 2024, table 2 (recalled); two operations are a product
    assert round(2 * table_of(workload).macs / 1e6) == mflop


def test_a_sample_looks_up_the_bytes_that_are_told_of_it():
    # 11.55 MB a sample in DLRM-A, at two bytes a number
    (tables,) = table_of("dlrm-a").lookups
    assert 2 * tables.read == pytest.approx(11.55e6, abs=0.005e6)


@pytest.mark.parametrize("workload", WORKLOADS)
def test_every_layer_divides_into_its_groups(workload):
    odd = [
        layer.name
        for layer in WORKLOADS[workload]
        if layer.channels % layer.groups or layer.filters % layer.groups
    ]
    assert odd == []


@pytest.mark.parametrize("workload", ["mobilenetv1", "mobilenetv2"])
def test_a_depthwise_filter_sees_one_channel(workload):
    depthwise = [layer for layer in layers_of(workload) if layer.name.endswith("depthwise")]
    assert [layer.weights_per_filter for layer in depthwise] == [9] * len(depthwise)
    assert [layer.groups for layer in depthwise] == [layer.filters for layer in depthwise]
