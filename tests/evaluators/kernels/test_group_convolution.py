"""Real grouped convolutions: counts, and that what is timed is really run."""

from __future__ import annotations

import pytest

from dse.core.batch import Batch
from dse.errors import PluginError, SpecError
from dse_evaluators.kernels.group_convolution import GroupConvolution
from dse_evaluators.kernels.grouped_network import GroupedNetwork
from dse_evaluators.workloads.catalogue import layers_of

SMALL = {"channels": 16, "side": 8, "window": 3}


@pytest.mark.slow
def test_a_rate_is_multiplications_for_each_second_with_the_error_of_the_time():
    got = GroupConvolution(repeats=5).evaluate(Batch.of([{**SMALL, "group": 4}]))
    assert got.columns["macs"] == 9 * 4 * 16 * 64
    assert got.columns["rate"] * got.columns["latency"] == pytest.approx(got.columns["macs"])
    relative = got.spread["latency"] / got.columns["latency"]
    assert got.spread["rate"] / got.columns["rate"] == pytest.approx(relative)


@pytest.mark.slow
def test_two_hundred_times_the_multiplications_take_longer():
    large = {"channels": 128, "side": 28, "window": 3, "group": 128}
    got = GroupConvolution(repeats=3).evaluate(Batch.of([{**SMALL, "group": 16}, large]))
    assert got.columns["latency"][1] > 4 * got.columns["latency"][0]


def test_groups_that_leave_channels_over_cannot_be_and_say_how_many():
    got = GroupConvolution().evaluate(Batch.of([{**SMALL, "group": 5}]))
    assert got.failures[0].kind == "infeasible"
    assert got.failures[0].reason == "16 channels in groups of 5: 1 left over"


def test_a_window_without_a_middle_is_not_measured():
    got = GroupConvolution().evaluate(Batch.of([{**SMALL, "window": 4, "group": 4}]))
    assert got.failures[0].kind == "raised"


@pytest.mark.slow
def test_a_regrouped_network_is_the_sum_of_its_layers_and_has_their_multiplications():
    model = GroupedNetwork(repeats=2, warmup=0)
    got = model.evaluate(Batch.of([{"group": 1}, {"group": 1024, "grouping": "count"}])).columns
    assert got["macs"] == pytest.approx([sum(layer.macs for layer in layers_of("mobilenetv1"))] * 2)
    assert got["grouped_time"] + got["other_time"] == pytest.approx(got["latency"])
    assert got["latency"][0] == got["latency"][1]  # the same layers, timed once


def test_a_network_whose_groups_leave_channels_over_cannot_be():
    got = GroupedNetwork().evaluate(Batch.of([{"group": 3}]))
    assert got.failures[0].kind == "infeasible"
    assert got.failures[0].reason == "32 channels in groups of 3: 2 left over"


def test_counts_that_are_none_are_told():
    with pytest.raises(PluginError, match="repeats"):
        GroupConvolution(repeats=1)
    with pytest.raises(SpecError, match="group"):
        GroupConvolution().check_values({"group": (0,)})
