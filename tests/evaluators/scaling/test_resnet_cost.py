"""The cost of a quantised ResNet: the numbers of the AQT library's tests, and what holds for all."""

from __future__ import annotations

import pytest

from dse.core.batch import Batch
from dse.errors import SpecError
from dse_evaluators.scaling.bottleneck import work
from dse_evaluators.scaling.resnet_cost import ResnetCost


def cost(metric: str, weight_bits: int, activation_bits: int, **others: float) -> float:
    design = {"depth": 50, "width": 1, "weight_bits": weight_bits, **others}
    batch = Batch.of([{**design, "activation_bits": activation_bits}])
    return float(ResnetCost().evaluate(batch).columns[metric][0])


# Printed in the tests of the AQT library for ResNet-50: whole numbers, so nothing may be off.
QUADRATIC = {
    (16, 16): 1046831169536,
    (8, 16): 523415584768,
    (8, 8): 261707792384,
    (4, 4): 65426948096,
    (4, 2): 32713474048,
}
MEMORY_BITS = {16: 408046592, 8: 204023296, 4: 102011648}


@pytest.mark.parametrize("bits", QUADRATIC)
def test_the_quadratic_cost_of_resnet_50_is_the_published_one(bits):
    assert cost("quadratic", *bits) == QUADRATIC[bits]


@pytest.mark.parametrize("bits", MEMORY_BITS)
def test_the_memory_of_resnet_50_is_the_published_one(bits):
    assert cost("memory", bits, 16) * 8 == MEMORY_BITS[bits]


# He et al. 2016, table 1, print 7.6e9 and 11.3e9 for 101 and 152 layers with the stride in the
# first convolution; version 1.5 has it in the second and takes some 0.24e9 more.
@pytest.mark.parametrize(("depth", "macs"), [(101, 7.6e9), (152, 11.3e9)])
def test_deeper_networks_take_the_multiplications_of_the_paper_and_the_later_stride(depth, macs):
    inner, edges = work(depth, 1.0)
    assert inner.macs + edges.macs == pytest.approx(macs + 0.24e9, abs=0.05e9)


def test_the_linear_cost_takes_the_wider_operand_rounded_up_to_a_multiplier():
    sixteen = cost("linear", 16, 16)
    assert cost("linear", 2, 4) == sixteen / 4
    assert cost("linear", 2, 2) == sixteen / 4
    assert cost("linear", 4, 5) == sixteen / 2
    assert cost("linear", 9, 2) == sixteen


def test_edges_keep_their_own_bits():
    inner, edges = work(50, 1.0)
    expected = inner.macs * 16 + edges.macs * 64
    assert cost("quadratic", 4, 4, edge_bits=8) == expected


def test_twice_the_width_takes_four_times_the_inner_weights_but_for_the_stems():
    narrow, wide = work(50, 1.0)[0], work(50, 2.0)[0]
    assert wide.weights == 4 * narrow.weights


def test_a_depth_that_no_resnet_has_is_refused_when_the_file_is_read():
    with pytest.raises(SpecError, match="there is no ResNet-34"):
        ResnetCost().check_values({"depth": (26, 34)})


@pytest.mark.parametrize("bits", [0, 32])
def test_bits_that_no_multiplier_has_are_refused(bits):
    with pytest.raises(SpecError, match="up to 16 bits"):
        ResnetCost().check_values({"weight_bits": (4, bits)})
