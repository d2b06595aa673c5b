"""Traffic model of an im2col convolution on a GPU through L1, L2 and DRAM, counted per tile."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from dse.core.values import Floats, Ints
from dse.errors import SpecError
from dse_evaluators.workloads.layers import Layer

ELEMENT_BYTES = 4

_SECTOR_BYTES = 32
"""Fetch granularity of L1; shorter rows of a filter tile waste the rest of a sector."""

_SAMPLED = 8
"""Number of tiles and of waves whose inputs are enumerated; the mean is used for the others."""

_KEPT = 1 << 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Im2colTile:
    """Tile of a thread block: ``rows`` pixels x ``cols`` filters, ``depth`` products per step.

    In the im2col matrix product, a row is an output pixel and a column a filter. The depth
    (reduction dimension) runs over the filter taps of the first channel, then those of the second,
    and so on.
    """

    rows: int
    cols: int
    depth: int

    @property
    def shared_bytes(self) -> int:
        """Shared memory in bytes, for two steps of both operands (double buffering)."""
        return 2 * (self.rows + self.cols) * self.depth * ELEMENT_BYTES


def tile_of(text: str) -> Im2colTile:
    """Parse a tile such as ``128x64x4``: rows, columns, depth.

    Raises:
        SpecError: the text is not a tile.
    """
    sides = text.split("x")
    if len(sides) != 3 or not all(side.isdecimal() and int(side) > 0 for side in sides):
        raise SpecError(f"tile cannot be {text!r}", hint="rows, columns and depth: 128x64x4")
    rows, cols, depth = map(int, sides)
    return Im2colTile(rows=rows, cols=cols, depth=depth)


@dataclass(frozen=True, slots=True, kw_only=True)
class Im2colTraffic:
    """Elements that a layer moves, and the L2 sizes [elements] from which data is reused.

    An L2 smaller than the first size keeps nothing from one tile to the next; smaller than the
    second, no filters for the next wave of tiles; smaller than the third, no inputs for the next
    column of tiles; smaller than the fourth, only a part of these inputs.
    """

    tiles: int
    waves: int
    l1: float
    l2: float
    inputs: tuple[float, ...]
    """Input elements read from DRAM with an L2 below the first threshold, ..., above the last."""
    filters: tuple[float, ...]
    """Filter elements read from DRAM, for the same ranges of the size of L2 as ``inputs``."""
    outputs: float
    thresholds: tuple[float, ...]


@lru_cache(maxsize=_KEPT)
def traffic(layer: Layer, batch: int, tile: Im2colTile, sms: int) -> Im2colTraffic:
    """Return the traffic of one convolution through L1, L2 and DRAM, in elements.

    Tiles run in waves of one per SM, along the pixels first; the tiles of a wave advance through
    the depth together. Padding counts as input, also beyond the edge of an image.

    Source:
        Lym et al.: DeLTA, 2019, for the quantities counted at each level. Its closed forms were
        not available: the inputs of a tile are enumerated here, and the regimes of L2 are those of
        an LRU cache.
    """
    pixels = batch * layer.output_height * layer.output_width
    depth, filters = layer.weights_per_filter, layer.filters
    down, across = -(-pixels // tile.rows), -(-filters // tile.cols)
    by_wave = _waves(layer, pixels, tile, sms)
    once = float(batch * layer.channels * _count_positions(layer, 0, pixels // batch, _taps(layer)))
    cold = float(by_wave.inputs.sum())
    tile_inputs, steps = _tile_inputs(layer, pixels, tile), -(-depth // tile.depth)
    largest = float(by_wave.filters.max())
    thresholds = np.maximum.accumulate(
        [
            min(sms, down) / down * tile_inputs / steps + largest / steps,
            float((by_wave.inputs + by_wave.filters).max()),
            once * min(1.0, down // sms * sms / down) + largest,
            once + largest,
        ]
    )
    # The same pixels recur after down // sms waves, or one more where a column ends within a wave.
    later = down % sms / sms if down >= sms else 1.0
    filters_once, line = float(filters * depth), tile.depth * ELEMENT_BYTES
    again = once * (1 + (across - 1) * later)
    inputs = (across * tile_inputs, cold, across * once, again, once)
    read = (filters_once * down, float(by_wave.filters.sum()), filters_once)
    return Im2colTraffic(
        tiles=down * across,
        waves=len(by_wave.inputs),
        l1=_span(layer) * pixels * depth * across
        + filters_once * down * _SECTOR_BYTES / min(_SECTOR_BYTES, line),
        l2=inputs[0] + read[0],
        inputs=tuple(np.minimum.accumulate(inputs)),
        filters=tuple(np.minimum.accumulate((*read, filters_once, filters_once))),
        outputs=float(pixels * filters),
        thresholds=tuple(thresholds),
    )


def _span(layer: Layer) -> float:
    """Return the elements that L1 fetches per requested input; they grow with the stride.

    Source:
        Lym et al.: DeLTA, 2019, the inefficiency of loads of inputs.
    """
    return layer.width * layer.stride / (layer.width - layer.filter_width + 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Waves:
    """Distinct input and filter elements that each wave of concurrent tiles accesses."""

    inputs: Floats  # (w,)
    filters: Floats  # (w,)


def _waves(layer: Layer, pixels: int, tile: Im2colTile, sms: int) -> _Waves:
    down, across = -(-pixels // tile.rows), -(-layer.filters // tile.cols)
    first = np.arange(0, down * across, sms)
    last = np.minimum(first + sms, down * across) - 1
    columns = np.minimum((last // down + 1) * tile.cols, layer.filters)
    columns = columns - first // down * tile.cols
    chosen = _spread(len(first))
    seen = [
        sum(
            _count_positions(layer, begin, end, _taps(layer))
            for begin, end in _pixel_runs(int(first[w]), int(last[w]), down, tile.rows, pixels)
        )
        for w in chosen
    ]
    positions = np.full(len(first), np.mean(seen[:-1]) if len(seen) > 1 else seen[0])
    positions[chosen] = seen
    return _Waves(
        inputs=positions * layer.channels, filters=columns * float(layer.weights_per_filter)
    )


def _pixel_runs(first: int, last: int, down: int, rows: int, pixels: int) -> list[tuple[int, int]]:
    """Return the output pixels of the tiles ``first`` to ``last`` as disjoint ranges."""
    if last - first + 1 >= down:
        return [(0, pixels)]
    begin, end = first % down, last % down
    if begin <= end:
        return [(begin * rows, min((end + 1) * rows, pixels))]
    return [(0, (end + 1) * rows), (begin * rows, pixels)]  # the wave wraps to the next column


def _tile_inputs(layer: Layer, pixels: int, tile: Im2colTile) -> float:
    """Return the distinct inputs of each tile and step, summed over a column of tiles."""
    window = layer.filter_height * layer.filter_width
    begins = range(0, layer.weights_per_filter, tile.depth)
    runs = Counter(
        run
        for begin in begins
        for run in _tap_runs(begin, min(begin + tile.depth, layer.weights_per_filter), window)
    )
    count = -(-pixels // tile.rows)
    chosen = _spread(count)
    seen = [
        sum(
            times * _count_positions(layer, at * tile.rows, min((at + 1) * tile.rows, pixels), run)
            for run, times in runs.items()
        )
        for at in chosen.tolist()
    ]
    full = np.mean(seen[:-1]) if len(seen) > 1 else 0.0
    return float(full * (count - 1) + seen[-1])


def _tap_runs(begin: int, end: int, window: int) -> list[tuple[int, int]]:
    """Return, for each channel in a step of the depth, the range of filter taps it covers."""
    return [
        (max(begin, at) - at, min(end, at + window) - at)
        for at in range(begin // window * window, end, window)
    ]


def _spread(count: int) -> Ints:
    """Return up to ``_SAMPLED`` evenly spaced integers from 0 to ``count`` - 1, with the last."""
    others = np.linspace(0, count - 2, min(_SAMPLED, count - 1)) if count > 1 else np.empty(0)
    return np.append(others.round().astype(np.int64), count - 1)


def _taps(layer: Layer) -> tuple[int, int]:
    return 0, layer.filter_height * layer.filter_width


@lru_cache(maxsize=_KEPT)
def _count_positions(layer: Layer, begin: int, end: int, taps: tuple[int, int]) -> int:
    """Count the distinct image positions that these output pixels read through these taps.

    ``begin`` to ``end`` number the output pixels consecutively through the images of the batch;
    ``taps`` is a range of positions in the filter window.
    """
    pixel = np.arange(begin, end)
    image, place = np.divmod(pixel, layer.output_height * layer.output_width)
    row, col = np.divmod(place, layer.output_width)
    tall = max(layer.height, (layer.output_height - 1) * layer.stride + layer.filter_height)
    top = (image - image[0]) * tall + row * layer.stride
    left = col * layer.stride
    seen = np.zeros((int(top[-1]) + layer.filter_height, layer.width + layer.stride), dtype=bool)
    for tap in range(*taps):
        down, right = divmod(tap, layer.filter_width)
        seen[top + down, left + right] = True
    return int(np.count_nonzero(seen))
