"""Exact replay of every load of an im2col convolution on a GPU through an LRU model of L2."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np

from dse.core.values import Ints
from dse_evaluators.workloads.layers import Layer

_NEVER = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True, kw_only=True)
class Misses:
    """Cache misses as a function of the cache size, computed from LRU reuse distances."""

    distances: Ints  # (d,), ascending reuse distances in elements
    counts: Ints  # (d,), number of loads with at least each distance

    @staticmethod
    def of(distances: list[Ints]) -> Misses:
        """Build the miss counts of an LRU cache from reuse distances, in elements."""
        found, counts = np.unique(np.concatenate(distances), return_counts=True)
        return Misses(distances=found, counts=counts[::-1].cumsum()[::-1])

    def at(self, elements: int) -> int:
        """Return the number of misses of an LRU cache that holds this many elements."""
        place = int(np.searchsorted(self.distances, elements, side="right"))
        return int(self.counts[place]) if place < len(self.counts) else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """Result of replaying a convolution: elements requested from L2, and L2 misses by L2 size."""

    l2: int
    inputs: Misses
    filters: Misses


@lru_cache(maxsize=256)
def replay(layer: Layer, batch: int, tile: tuple[int, int, int], sms: int) -> Replayed:
    """Count the elements that one convolution requests from L2, and the misses by L2 size.

    ``tile`` is rows (output pixels), columns (filters) and depth (reduction elements per step).
    Tiles are numbered along the pixels first, then along the filters; in each wave of ``sms``
    concurrent tiles, every tile in turn executes its first step, then every tile its second, and so
    on. In each step a tile requests each of its elements once. L2 evicts the least recently used
    elements; elements of the same tile and step have the same age. The code shares nothing with
    :mod:`.im2col_traffic`, for which it is the test oracle.
    """
    walk = _Walk(layer=layer, batch=batch, rows=tile[0], cols=tile[1], depth=tile[2])
    recency = _Recency(elements=walk.inputs + walk.filters)
    inputs, filters = list[Ints](), list[Ints]()
    for loads in walk.loads(sms):
        distances = recency.use(loads)
        border = int(np.searchsorted(loads, walk.inputs))
        inputs.append(distances[:border])
        filters.append(distances[border:])
    asked = sum(map(len, inputs)) + sum(map(len, filters))
    return Replayed(l2=asked, inputs=Misses.of(inputs), filters=Misses.of(filters))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Walk:
    """Generator of the memory addresses that tiles load; inputs precede filters in memory."""

    layer: Layer
    batch: int
    rows: int
    cols: int
    depth: int

    @property
    def sides(self) -> tuple[int, int]:
        """Height and width of an image in pixels, extended to cover the last windows."""
        one = self.layer
        return (
            max(one.height, (one.output_height - 1) * one.stride + one.filter_height),
            max(one.width, (one.output_width - 1) * one.stride + one.filter_width),
        )

    @property
    def inputs(self) -> int:
        height, width = self.sides
        return self.batch * self.layer.channels * height * width

    @property
    def filters(self) -> int:
        return self.layer.filters * self.layer.weights_per_filter

    def loads(self, sms: int) -> Iterator[Ints]:
        """Yield the sorted distinct addresses that each tile loads in each step, in run order.

        The order is that in which the GPU executes tiles and steps.
        """
        one = self.layer
        pixels = self.batch * one.output_height * one.output_width
        down, across = -(-pixels // self.rows), -(-one.filters // self.cols)
        for wave in range(0, down * across, sms):
            tiles = range(wave, min(wave + sms, down * across))
            for step in range(0, one.weights_per_filter, self.depth):
                k = np.arange(step, min(step + self.depth, one.weights_per_filter))
                for at in tiles:
                    m = np.arange(at % down * self.rows, min((at % down + 1) * self.rows, pixels))
                    n = np.arange(
                        at // down * self.cols, min((at // down + 1) * self.cols, one.filters)
                    )
                    filters = self.inputs + n[:, None] * one.weights_per_filter + k
                    yield np.concatenate([np.unique(self._address(m, k)), filters.ravel()])

    def _address(
        self,
        m: Ints,  # (m,)
        k: Ints,  # (k,)
    ) -> Ints:
        """Return the addresses of the inputs in the im2col matrix's rows ``m`` and columns ``k``.

        The result is (m, k).
        """
        one = self.layer
        image, place = np.divmod(m, one.output_height * one.output_width)
        row, col = np.divmod(place, one.output_width)
        channel, tap = np.divmod(k, one.filter_height * one.filter_width)
        down, right = np.divmod(tap, one.filter_width)
        y = row[:, None] * one.stride + down
        x = col[:, None] * one.stride + right
        height, width = self.sides
        return ((image[:, None] * one.channels + channel) * height + y) * width + x


@dataclass(slots=True, kw_only=True)
class _Recency:
    """Last-use time of each element, from which LRU reuse distances are computed."""

    elements: int
    _last: Ints = field(init=False)
    _alive: Ints = field(init=False)
    _now: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        self._last = np.full(self.elements, -1, dtype=np.int64)
        self._alive = np.zeros(1024, dtype=np.int64)

    def use(self, loads: Ints) -> Ints:
        """Record that n distinct addresses are used now; return their LRU reuse distances, (n,)."""
        before = self._last[loads]
        known = before[before >= 0]
        distances = np.full(len(loads), _NEVER)
        if len(known):
            first = int(known.min())
            since = self._alive[first : self._now][::-1].cumsum()[::-1]
            distances[before >= 0] = since[known - first]
            np.subtract.at(self._alive, known, 1)
        if self._now == len(self._alive):
            self._alive = np.concatenate([self._alive, np.zeros_like(self._alive)])
        self._alive[self._now] = len(loads)
        self._last[loads] = self._now
        self._now += 1
        return distances
