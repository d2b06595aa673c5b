"""The three products of each convolution, and the channels that pruning leaves."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dse.errors import SpecError
from dse_evaluators.accelerators.training.chains import CHAINS, chain_of
from dse_evaluators.accelerators.training.channel_tables import ChannelTables
from dse_evaluators.accelerators.training.training_products import ConvolutionTraining, sum_rows

RESNET = [conv for block in CHAINS["resnet50"] for conv in block.all_convs]
TABLES = ChannelTables(RESNET)


def convs_of(network):
    return [conv for block in CHAINS[network] for conv in block.all_convs]


def products_of(network, samples):
    """The products of an unpruned step."""
    convs = convs_of(network)
    channels = ChannelTables(convs).channels(np.ones(1), np.zeros(1))
    return ConvolutionTraining(convs).products(channels, np.array([samples]))


# ResNet-50: 4.087 GMAC is what the cost script of PruneTrain's repository prints; torchvision's
# 25,557,032 parameters without the classifier's 2,049,000 and the 53,120 of normalisations.
# VGG-16: torchvision's 14,714,688 parameters of its convolutions without 4,224 biases.
@pytest.mark.parametrize(
    ("network", "convs", "weights"), [("resnet50", 53, 23_454_912), ("vgg16", 13, 14_710_464)]
)
def test_a_network_has_the_convolutions_and_weights_of_its_paper(network, convs, weights):
    assert len(convs_of(network)) == convs
    assert sum(conv.weights for conv in convs_of(network)) == weights


def test_resnet_50_multiplies_as_often_as_prunetrain_says():
    assert sum(conv.macs for conv in RESNET) == pytest.approx(4.087e9, abs=0.0005e9)


@pytest.mark.parametrize("network", sorted(CHAINS))
def test_a_block_takes_what_the_one_before_gives(network):
    convs = [block.convs for block in CHAINS[network]]
    given = [block[-1].filters for block in convs[:-1]]
    assert [block[0].channels for block in convs[1:]] == given


@pytest.mark.parametrize("network", sorted(CHAINS))
def test_each_convolution_multiplies_thrice_but_for_the_gradient_of_what_the_network_reads(network):
    convs = convs_of(network)
    once = sum(conv.macs for conv in convs)
    assert sum_rows(products_of(network, 3.0).macs) == 3 * (3 * once - convs[0].macs)


def test_the_gradients_of_one_input_read_it_once():
    products = products_of("resnet50", 1.0)
    place = next(at for at, conv in enumerate(RESNET) if conv.window == 3 and conv.stride == 2)
    read = products.inputs[products.place == place].sum()
    assert read == pytest.approx(3 * RESNET[place].inputs)


def test_nothing_is_pruned_where_all_channels_stay():
    channels = TABLES.channels(np.ones(1), np.array([7.0]))
    assert channels.inputs[:, 0].tolist() == [conv.channels for conv in RESNET]
    assert channels.outputs[:, 0].tolist() == [conv.filters for conv in RESNET]


@given(st.floats(0.05, 1), st.integers(0, 1000))
def test_what_is_added_up_has_the_same_channels(keep, draw):
    channels = TABLES.channels(np.array([keep]), np.array([float(draw)]))
    added = [at for at, conv in enumerate(RESNET) if conv.writes == 200]
    assert len(added) == 5
    assert np.unique(channels.outputs[added]).size == 1


@given(st.floats(0.05, 1), st.integers(0, 1000))
def test_a_convolution_reads_the_channels_that_are_left_of_what_it_reads(keep, draw):
    channels = TABLES.channels(np.array([keep]), np.array([float(draw)]))
    (written,) = (at for at, conv in enumerate(RESNET) if conv.writes == 101)
    (read,) = (at for at, conv in enumerate(RESNET) if conv.reads == 101)
    assert channels.inputs[read] == channels.outputs[written]


@given(st.floats(0.05, 0.99), st.floats(0.05, 0.99), st.integers(0, 1000))
def test_of_one_draw_a_larger_share_never_leaves_fewer_channels(keep, other, draw):
    shares = np.sort([keep, other])
    channels = TABLES.channels(shares, np.full(2, float(draw)))
    assert (channels.outputs[:, 0] <= channels.outputs[:, 1]).all()


def test_draws_differ():
    channels = TABLES.channels(np.full(2, 0.5), np.array([0.0, 1.0]))
    assert (channels.outputs[:, 0] != channels.outputs[:, 1]).any()


def test_an_unknown_network_is_told_with_the_nearest():
    with pytest.raises(SpecError, match="resnet50"):
        chain_of("resnet5")
