"""Networks with other groups: MobileNet's printed counts, and what holds at any group and width."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dse_evaluators.accelerators.grouped.grouped_convolution import (
    GroupConvolutionNetwork,
    Grouping,
)
from dse_evaluators.workloads.catalogue import layers_of
from dse_evaluators.workloads.layers import convolution

MOBILENET = GroupConvolutionNetwork(layers_of("mobilenetv1"))


def grouping(group, width=1.0, *, by_count=False):
    """One design, or one for each group of a list."""
    groups = np.atleast_1d(np.array(group, dtype=float))
    return Grouping(
        group=groups,
        by_count=np.full(len(groups), by_count),
        width=np.broadcast_to(np.asarray(width, dtype=float), groups.shape),
    )


def total(values) -> np.ndarray:
    return values.sum(axis=0)


# Howard et al., MobileNets, 2017, table 4, row "MobileNet": 569 million multiplications, 4.2 million
# parameters; table 6, rows of the multipliers 0.75, 0.5 and 0.25: 325, 149 and 41 million.
@pytest.mark.parametrize(
    ("width", "macs", "weights"),
    [(1.0, 569e6, 4.2e6), (0.75, 325e6, 2.6e6), (0.5, 149e6, 1.3e6), (0.25, 41e6, 0.5e6)],
)
def test_depthwise_groups_and_a_width_give_the_printed_mobilenets(width, macs, weights):
    shapes = MOBILENET.shapes(grouping(1, width))
    assert total(shapes.macs) == pytest.approx(macs, abs=0.5e6)
    assert total(shapes.weights) == pytest.approx(weights, abs=0.05e6)


def test_one_group_for_all_channels_is_an_ordinary_convolution():
    layer = convolution("depthwise", 14, 3, 512, 512, groups=512)
    dense = convolution("dense", 14, 3, 512, 512)
    shapes = GroupConvolutionNetwork((layer, layer)).shapes(grouping(1, by_count=True))
    assert shapes.macs[0] == dense.macs


@pytest.mark.parametrize("size", [1, 8, 32])
@pytest.mark.parametrize("side", [7, 14, 56])
def test_a_word_of_a_grouped_layer_is_multiplied_as_often_as_its_formula_says(size, side):
    layer = convolution("depthwise", side, 3, 512, 512, groups=512)
    shapes = GroupConvolutionNetwork((layer, layer)).shapes(grouping(size))
    words = shapes.input_words + shapes.output_words + shapes.weights
    assert shapes.macs[0] / words[0] == pytest.approx(9 * size / (2 + 9 * size / side**2))


def test_a_layer_with_one_size_of_groups_never_has_more_channels_in_one_than_there_are():
    shapes = MOBILENET.shapes(grouping(4096))
    assert (shapes.per_group == shapes.channels).all()


@settings(max_examples=25)
@given(st.floats(1, 4096), st.booleans())
def test_the_solved_width_has_the_multiplications_of_the_network(group, by_count):
    asked = grouping(group, by_count=by_count)
    solved = asked.with_width(MOBILENET.same_macs_width(asked))
    assert total(MOBILENET.shapes(solved).macs) == pytest.approx(MOBILENET.macs, rel=1e-12)


@given(st.floats(1, 1024), st.floats(1, 16))
def test_larger_groups_never_multiply_less_and_more_groups_never_more(group, factor):
    by_size = total(MOBILENET.shapes(grouping([group, group * factor])).macs)
    by_count = total(MOBILENET.shapes(grouping([group, group * factor], by_count=True)).macs)
    assert by_size[1] >= by_size[0]
    assert by_count[1] <= by_count[0]
