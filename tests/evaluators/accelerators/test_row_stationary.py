"""Grouped convolutions on a row-stationary array: counts by hand, and what holds for every array."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dse.core.batch import Batch
from dse.errors import SpecError
from dse_evaluators.accelerators.grouped.grouped_convolution import (
    GroupConvolutionNetwork,
    Grouping,
)
from dse_evaluators.accelerators.grouped.row_stationary import RowStationary
from dse_evaluators.accelerators.grouped.row_stationary_array import (
    RowStationaryArray,
    cycles,
    spatial_share,
)
from dse_evaluators.workloads.layers import convolution

MODEL = RowStationary()
BASE = {"rows": 32, "cols": 32, "feed": 32, "group": 4, "batch": 1, "clock": 1e9}

designs = st.fixed_dictionaries(
    {
        "rows": st.integers(3, 200),
        "cols": st.integers(1, 200),
        "feed": st.floats(1, 1e4),
        "group": st.integers(1, 256),
        "grouping": st.sampled_from(["size", "count"]),
        "width": st.sampled_from([0.0, 0.25, 0.5, 1.0]),
        "batch": st.integers(1, 64),
        "clock": st.floats(1e8, 2e9),
    }
)


def metrics(rows):
    """The columns of these designs, all of which can exist."""
    got = MODEL.evaluate(Batch.of(rows))
    assert not got.failures
    return got.columns


def layer_and_array(side: int, *, feed: float = 1e9):
    """A depthwise layer of 64 channels, and Eyeriss's array of 12 x 14."""
    layer = convolution("depthwise", side, 3, 64, 64, groups=64)
    shapes = GroupConvolutionNetwork((layer, layer)).shapes(
        Grouping(group=np.ones(1), by_count=np.array([False]), width=np.ones(1))
    )
    array = RowStationaryArray(rows=np.array([12.0]), cols=np.array([14.0]), feed=np.array([feed]))
    return shapes, array


@pytest.mark.parametrize(
    ("side", "share"),
    [
        (13, 4 * 3 * 13 / 168),  # four sets of 3 rows, each 13 of 14 columns wide
        (7, 4 * 2 * 3 * 7 / 168),  # two sets side by side
        (28, 4 * 3 * 14 / 168),  # folded once, which fills all columns
        (27, 4 * 3 * 13.5 / 168),
    ],
)
def test_the_array_of_eyeriss_is_filled_as_counted_by_hand(side, share):
    shapes, array = layer_and_array(side)
    assert spatial_share(shapes, array)[0] == pytest.approx(share)


def test_a_layer_that_waits_for_words_takes_as_long_as_they_take():
    shapes, array = layer_and_array(13, feed=0.5)
    words = 2 * 64 * 13**2 + 9 * 64
    assert cycles(shapes, array, np.ones(1)).all[0] == pytest.approx(words / 0.5)


@given(designs, st.floats(1, 100))
def test_a_faster_feed_is_never_slower(design, factor):
    got = metrics([design, design | {"feed": design["feed"] * factor}])
    assert got["latency"][1] <= got["latency"][0] * (1 + 1e-12)


@given(designs)
def test_an_unlimited_feed_leaves_the_cycles_that_the_mapping_takes(design):
    got = metrics([design | {"feed": 1e300}])
    assert got["feed_time"] == 0
    assert got["latency"] == pytest.approx(got["macs_time"] + got["mapping_time"], rel=1e-12)


@given(designs, st.integers(2, 64))
def test_more_images_at_once_never_take_longer_each(design, times):
    got = metrics([design, design | {"batch": design["batch"] * times}])
    assert got["latency"][1] <= got["latency"][0] * times * (1 + 1e-12)


@given(designs)
def test_time_has_three_parts_none_of_which_is_negative(design):
    got = metrics([design])
    parts = np.array([got[f"{name}_time"] for name in ("macs", "mapping", "feed")])
    assert (parts >= 0).all()
    assert parts.sum() == pytest.approx(got["latency"][0], rel=1e-12)
    assert got["bottleneck"] == parts.argmax()


@settings(max_examples=25)
@given(st.lists(designs, min_size=2, max_size=5))
def test_a_design_is_as_fast_alone_as_among_others(rows):
    together, first = metrics(rows), metrics(rows[:1])
    assert {name: values[0] for name, values in together.items()} == {
        name: values[0] for name, values in first.items()
    }


@given(designs)
def test_the_network_as_it_is_gains_nothing(design):
    got = metrics([design | {"group": 1, "grouping": "size", "width": 1.0}])
    assert got["utilization_gain"] == 0
    assert got["latency_gain"] == 0


@pytest.mark.parametrize(
    "other",
    [
        {"rows": 16},
        {"cols": 16},
        {"feed": 64},
        {"group": 8},
        {"grouping": "count"},
        {"width": 0.5},
        {"batch": 8},
        {"clock": 5e8},
    ],
    ids=lambda other: next(iter(other)),
)
def test_every_knob_moves_some_metric(other):
    got = metrics([BASE, BASE | other])
    assert any(values[0] != values[1] for values in got.values())


def test_an_array_smaller_than_a_window_cannot_be_and_says_by_how_much():
    got = MODEL.evaluate(Batch.of([BASE, BASE | {"rows": 2}]))
    assert list(got.failures) == [1]
    assert got.failures[1].kind == "infeasible"
    assert got.failures[1].reason == "needs 3 rows for a window, has 2: 1 short"


@pytest.mark.parametrize("values", [{"group": (0,)}, {"grouping": ("sizes",)}, {"feed": (0,)}])
def test_what_cannot_be_run_is_told_before_it_is(values):
    with pytest.raises(SpecError):
        MODEL.check_values(values)
