"""Cycles of a stage of recommendation on an accelerator: link, embeddings, layers, sorting."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from dse.core.values import Floats

CYCLE_S = 8e-9
_GIB = 2.0**30
_CYCLE_NS = 8.0
_WAIT = 100.0  # cycles until the first byte of the memory
_TABLES = 26
_SINGLE = 4
_LOAD = 1e6  # bytes of weights that are loaded at once
_LANES = 16  # items that are sorted in a cycle, by eights
_LINE = 64.0  # bytes of a line of the memory


@dataclass(frozen=True, slots=True)
class FunnelModel:
    """Ranking model of a recommender: embedding length, widths of bottom and top layers."""

    dim: int
    bottom: tuple[int, ...]
    top: tuple[int, ...]

    @property
    def layers(self) -> tuple[tuple[int, int], ...]:
        """Numbers of inputs and outputs of each layer of the ranking model.

        The first top layer reads 27 vectors.
        """
        return (*pairwise(self.bottom), *pairwise((self.dim * (_TABLES + 1), *self.top)))


MODELS: Mapping[str, FunnelModel] = {
    "small": FunnelModel(4, (13, 64, 4), (64, 1)),
    "medium": FunnelModel(16, (13, 64, 16), (64, 1)),
    "large": FunnelModel(32, (13, 512, 256, 128, 64, 32), (96, 1)),
}
"""The models of RecPipe, from the least to the largest."""

BANDWIDTHS: Mapping[int, float] = {128: 32.0, 64: 8.0, 32: 2.0, 16: 0.125}
"""Bandwidth in GiB/s of an array, by the elements of its side."""


def count_cycles(model: FunnelModel, items: Floats, side: Floats, bandwidth: Floats) -> Floats:
    """Return the cycles of one stage of a recommender in n designs; bandwidths are in GiB/s.

    Source:
        Gupta et al.: RecPipe, MICRO 2021, and the constants of its published model; four of its
        logged times agree to 0.001 %.
    """
    bytes_per_ns = bandwidth * _GIB / 1e9
    rows = _SINGLE * model.dim * _TABLES * items
    cycles = _WAIT + 0.5 * rows / bytes_per_ns / _CYCLE_NS + 0.5 * rows / _LINE
    for inputs, outputs in model.layers:
        weights = float(_SINGLE * inputs * outputs)
        loads = np.ceil(weights / _LOAD)
        cycles += loads * (_WAIT + min(weights, _LOAD) / bytes_per_ns / _CYCLE_NS)
        passes = np.ceil(inputs / side) * np.ceil(outputs / side)
        cycles += (np.minimum(outputs, side) + np.minimum(inputs, side) + items) * passes
    link = (5 + 12 / 4096 * items) * 1000 + 5 * 1000
    return cycles + items / _LANES / 8 + link
