"""The traffic of an im2col convolution: counts by hand, its oracle, and what both must keep."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from dse.errors import SpecError
from dse_evaluators.kernels.im2col_layers import shapes_of
from dse_evaluators.kernels.im2col_replay import replay
from dse_evaluators.kernels.im2col_traffic import tile_of, traffic
from dse_evaluators.workloads.catalogue import layers_of
from dse_evaluators.workloads.layers import Layer

EVERYTHING = 1 << 40


def layer(side=10, window=3, channels=4, filters=8, stride=1):
    return Layer(
        name="",
        height=side,
        width=side,
        filter_height=window,
        filter_width=window,
        channels=channels,
        filters=filters,
        stride=stride,
    )


@st.composite
def layers(draw):
    window = draw(st.sampled_from([1, 2, 3, 5]))
    return layer(
        side=draw(st.integers(window, 14)),
        window=window,
        channels=draw(st.integers(1, 12)),
        filters=draw(st.integers(1, 40)),
        stride=draw(st.integers(1, 2)),
    )


tiles = st.sampled_from(["16x8x4", "32x16x8", "8x32x3", "64x64x8"])


def walked(one, batch, tile, sms):
    side = tile_of(tile)
    return replay(one, batch, (side.rows, side.cols, side.depth), sms)


def used_least_recently(one, tile, sms, size):
    """Misses of a cache kept as a list of what was used at each time, the oldest first."""
    side, kept, missed = tile_of(tile), [], 0
    down = -(-one.output_height * one.output_width // side.rows)
    across = -(-one.filters // side.cols)
    for wave in range(0, down * across, sms):
        for step in range(0, one.weights_per_filter, side.depth):
            for at in range(wave, min(wave + sms, down * across)):
                loads = asked(one, side, at % down, at // down, step)
                missed += len(loads - set().union(*kept))
                kept = [*(old - loads for old in kept), loads]
                while sum(map(len, kept)) > size:
                    kept.pop(0)
    return missed


def asked(one, side, row, col, step):
    """What one tile asks for in one step, as names of inputs and filters."""
    depth = range(step, min(step + side.depth, one.weights_per_filter))
    pixels = one.output_height * one.output_width
    rows = range(row * side.rows, min((row + 1) * side.rows, pixels))
    cols = range(col * side.cols, min((col + 1) * side.cols, one.filters))
    inputs = set()
    for k in depth:
        channel, tap = divmod(k, one.filter_height * one.filter_width)
        down, right = divmod(tap, one.filter_width)
        for pixel in rows:
            y, x = divmod(pixel, one.output_width)
            inputs.add((channel, y * one.stride + down, x * one.stride + right))
    return inputs | {("filter", n, k) for n in cols for k in depth}


def test_a_convolution_of_one_pixel_windows_reads_its_tensors_once():
    # 10 x 10 pixels x 4 channels, 8 filters x 4 weights: 400 and 32 elements.
    told = traffic(layer(window=1), 1, tile_of("128x128x8"), 30)
    assert (told.l2, told.inputs[-1], told.filters[-1]) == (432, 400, 32)


def test_two_columns_of_tiles_ask_l2_for_the_inputs_twice():
    told = traffic(layer(window=1), 1, tile_of("128x4x8"), 30)
    assert told.l2 == 2 * 400 + 32


def test_a_stride_of_two_leaves_three_of_four_pixels_unread():
    told = traffic(layer(side=9, window=1, stride=2), 1, tile_of("128x128x8"), 30)
    assert told.inputs[-1] == 4 * 25


def test_l1_fetches_a_row_of_the_image_for_the_pixels_of_a_row():
    # 8 x 8 pixels x 36 taps, each 10 wide for 8 wanted; 8 x 36 weights in rows of a sector.
    told = traffic(layer(), 1, tile_of("64x8x8"), 30)
    assert told.l1 == 64 * 36 * 10 / 8 + 8 * 36


def test_a_short_row_of_filters_wastes_half_a_sector():
    told = traffic(layer(), 1, tile_of("64x8x4"), 30)
    assert told.l1 == 64 * 36 * 10 / 8 + 2 * 8 * 36


@settings(max_examples=30, deadline=None)
@given(one=layers(), tile=tiles, sms=st.integers(1, 6), batch=st.integers(1, 2))
def test_l2_traffic_is_that_of_a_walk_through_every_load(one, tile, sms, batch):
    told = traffic(one, batch, tile_of(tile), sms)
    assert told.l2 == pytest.approx(walked(one, batch, tile, sms).l2, rel=0.05)


@settings(max_examples=30, deadline=None)
@given(one=layers(), tile=tiles, sms=st.integers(1, 6), batch=st.integers(1, 2))
def test_an_l2_for_everything_reads_what_a_walk_with_one_reads(one, tile, sms, batch):
    told = traffic(one, batch, tile_of(tile), sms)
    found = walked(one, batch, tile, sms)
    assert told.inputs[-1] == found.inputs.at(EVERYTHING)
    assert told.filters[-1] == found.filters.at(EVERYTHING)


@settings(max_examples=30, deadline=None)
@given(one=layers(), tile=tiles, sms=st.integers(1, 6), batch=st.integers(1, 9))
def test_a_larger_l2_never_reads_more(one, tile, sms, batch):
    told = traffic(one, batch, tile_of(tile), sms)
    assert np.all(np.diff(told.inputs) <= 0)
    assert np.all(np.diff(told.filters) <= 0)
    assert np.all(np.diff(told.thresholds) >= 0)


@settings(max_examples=30, deadline=None)
@given(one=layers(), tile=tiles, sms=st.integers(1, 6))
def test_dram_is_never_asked_for_more_than_l2_nor_for_less_than_all_once(one, tile, sms):
    told = traffic(one, 1, tile_of(tile), sms)
    assert told.inputs[0] + told.filters[0] <= told.l2 * (1 + 1e-12)
    assert told.filters[-1] == one.weights


@settings(max_examples=25, deadline=None)
@given(one=layers(), tile=tiles, sms=st.integers(1, 4), size=st.integers(1, 3000))
def test_the_walk_misses_what_a_list_of_the_recently_used_misses(one, tile, sms, size):
    assume(one.macs < 60_000)
    found = walked(one, 1, tile, sms)
    assert found.inputs.at(size) + found.filters.at(size) == used_least_recently(
        one, tile, sms, size
    )


@settings(max_examples=20, deadline=None)
@given(one=layers(), tile=tiles, sizes=st.lists(st.integers(0, 5000), min_size=2, max_size=6))
def test_a_walk_with_a_larger_l2_never_misses_more(one, tile, sizes):
    found = walked(one, 1, tile, 3)
    missed = [found.inputs.at(size) + found.filters.at(size) for size in sorted(sizes)]
    assert missed == sorted(missed, reverse=True)
    assert missed[0] <= found.l2


@pytest.mark.parametrize("text", ["128x64", "128x64x0", "128xax4", "128x64x4x1", ""])
def test_a_tile_has_three_sides(text):
    with pytest.raises(SpecError, match=f"tile cannot be '{re.escape(text)}'"):
        tile_of(text)


def test_a_network_with_groups_has_no_im2col_product():
    with pytest.raises(SpecError, match="not a convolution of one group"):
        shapes_of(layers_of("mobilenetv1"))
