"""The closed forms of the flushed buffer against the buffer itself, played word by word."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dse_evaluators.accelerators.systolic.flushing import count_tiled_misses, cyclic, overlapping
from dse_evaluators.accelerators.systolic.schedule import FLOWS
from dse_evaluators.workloads.layers import Layer

small = st.integers(1, 12)


def played(words: list[int], capacity: int) -> int:
    """Misses of a buffer that is emptied as soon as it holds ``capacity`` words."""
    held: set[int] = set()
    misses = 0
    for word in words:
        misses += word not in held
        held.add(word)
        if len(held) == capacity:
            held = set()
    return misses


def at(value: int) -> np.ndarray:
    return np.array([float(value)])


@given(words=st.integers(1, 60), passes=small, capacity=st.integers(1, 80))
def test_a_cycle_misses_as_often_as_the_played_buffer(words, passes, capacity):
    found = cyclic(at(words), at(passes), at(capacity)).item()
    assert found == played(list(range(words)) * passes, capacity)


@given(
    tile=st.integers(1, 40),
    edge_share=st.floats(0, 0.99),
    tiles=small,
    passes=small,
    capacity=st.integers(1, 150),
)
def test_tiles_miss_as_often_as_the_played_buffer(tile, edge_share, tiles, passes, capacity):
    edge = int(tile * edge_share)
    widths = [tile] * tiles + [edge]
    starts = np.cumsum([0, *widths])
    trace = [
        word
        for start, width in zip(starts, widths, strict=False)
        for word in list(range(start, start + width)) * passes
    ]
    found = count_tiled_misses(
        at(tile), at(edge), at(tiles), passes=at(passes), capacity=at(capacity)
    ).item()
    assert found == played(trace, capacity)


@given(
    flow=st.sampled_from(FLOWS),
    side=st.integers(3, 7),
    channels=st.integers(1, 3),
    array=st.tuples(st.integers(1, 9), st.integers(1, 9)),
    passes=st.integers(1, 4),
    capacity=st.integers(1, 200),
)
def test_overlapping_windows_miss_between_once_and_every_time(
    flow, side, channels, array, passes, capacity
):
    layer = Layer(
        name="",
        height=side,
        width=side,
        filter_height=3,
        filter_width=3,
        channels=channels,
        filters=1,
    )
    asked = (side - 2) ** 2 * 9 * channels * passes
    found = overlapping(flow, layer, array, passes=passes, capacity=capacity)
    assert side * side * channels <= found <= asked
