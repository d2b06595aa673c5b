"""Misses of a buffer that evicts all words when it is full, as SCALE-Sim's read buffers do.

One half of a read buffer is filled while the other half serves. When the serving half has taken in
``capacity`` distinct words, all of them are evicted: flush-when-full in the theory of paging.
"""

from __future__ import annotations

from functools import lru_cache
from typing import assert_never

import numpy as np

from dse.core.values import Floats, Ints
from dse_evaluators.accelerators.systolic.schedule import Flow
from dse_evaluators.workloads.layers import Layer


def cyclic(words: Floats, passes: Floats, capacity: Floats) -> Floats:
    """Count buffer misses when the same distinct ``words`` are read in order ``passes`` times.

    If there are fewer words than ``capacity``, each word misses once, otherwise in every pass.
    """
    return words * np.where(words < capacity, 1.0, passes)


def count_tiled_misses(
    tile: Floats,  # words of a full tile
    edge: Floats,  # words of the last, narrower tile
    tiles: Floats,  # how many full tiles
    *,
    passes: Floats,
    capacity: Floats,
) -> Floats:
    """Count buffer misses when each of several tiles is read ``passes`` times in turn.

    All words of the tiles are distinct. A tile larger than the buffer misses on every word. If
    tiles fit, the buffer is flushed whenever it is full; the words of the tile that is being read
    at that time, as far as they were read, miss again.
    """
    fit = np.ceil(capacity / np.minimum(tile, capacity))  # the tile that fills the buffer
    period = np.maximum(fit - 1.0, 1.0)
    flushes = np.where(tiles < fit, 0.0, 1.0 + (tiles - fit) // period)
    small = tile < capacity
    again = flushes * (capacity - (fit - 1.0) * tile)
    held_small = tile * np.where(tiles < fit, tiles, 1.0 + (tiles - fit) % period)
    held = np.where(small, held_small, (tiles * passes * tile) % capacity)
    full = np.where(small, tiles * tile + again, tiles * passes * tile)
    edge_again = np.where(held + edge < capacity, 0.0, capacity - held)
    last = np.where(edge < capacity, edge + np.where(edge > 0, edge_again, 0.0), passes * edge)
    return np.where(passes == 1.0, tiles * tile + edge, full + last)


@lru_cache(maxsize=4096)
def overlapping(  # cached: the arguments determine the trace
    flow: Flow, layer: Layer, array: tuple[int, int], *, passes: int, capacity: int
) -> int:
    """Count the DRAM reads of a convolution's inputs by replaying one pass of its trace.

    A closed form is not available because windows overlap.
    """
    words = _trace(flow, layer, array)
    since = _since_last_use(words)
    wrapped = np.concatenate([since, since])
    start, end, misses = 0, len(since) * passes, 0
    while start < end:
        at = start % len(since)
        length, taken = _phase(wrapped[at : at + min(len(since), end - start)], capacity)
        start += length
        misses += taken
    return misses


def _phase(since: Ints, capacity: int) -> tuple[int, int]:
    """Return how many accesses fill an empty buffer, and how many distinct words they load.

    ``since`` is the distance of each access to the previous one of the same word.
    """
    reach = 4 * capacity
    while True:
        new = since[:reach] > np.arange(min(reach, len(since)))
        seen = np.cumsum(new)
        if seen[-1] >= capacity:
            return int(np.searchsorted(seen, capacity)) + 1, capacity
        if reach >= len(since):
            return len(since), int(seen[-1])
        reach *= 4


def _since_last_use(words: Ints) -> Ints:
    """Return, for each position of a cyclic trace, the distance to the previous use of its word."""
    order = np.argsort(words, kind="stable")
    first = np.flatnonzero(np.diff(words[order], prepend=-1))
    last = np.append(first[1:], len(order)) - 1
    before = np.empty_like(order)
    before[1:] = order[:-1]
    before[first] = order[last] - len(order)
    since = np.empty_like(order)
    since[order] = order - before
    return since


def _trace(flow: Flow, layer: Layer, array: tuple[int, int]) -> Ints:
    """Return the addresses of the input words that one pass reads, in order."""
    rows, columns = array
    pixel, tap, words = _windows(layer)
    match flow:
        case "os":  # pixels down the rows, window over time, each pixel one cycle later
            tile, lane = np.divmod(pixel, rows)
            when = tap + lane
        case "ws":  # window down the rows, pixels over time, each tap one cycle later
            tile, lane = np.divmod(tap, rows)
            when = pixel + lane
        case "is":  # pixels across the columns, window down the rows, bottom row first
            across, lane = np.divmod(pixel, columns)
            down, row = np.divmod(tap, rows)
            tile = across * (int(tap.max()) // rows + 1) + down
            when = -row
        case _:
            assert_never(flow)
    return words[np.lexsort((lane, when, tile))]


def _windows(layer: Layer) -> tuple[Ints, Ints, Ints]:
    """Return output pixel, window position and address of each input word that a window reads."""
    pixel, tap = np.indices((layer.output_height * layer.output_width, layer.weights_per_filter))
    top, left = np.divmod(pixel, layer.output_width)
    row, rest = np.divmod(tap, layer.filter_width * layer.channels)
    column, channel = np.divmod(rest, layer.channels)
    row, column = row + top * layer.stride, column + left * layer.stride
    inside = (row < layer.height) & (column < layer.width)
    words = (row * layer.width + column) * layer.channels + channel
    return pixel[inside], tap[inside], words[inside]
