"""Execution time model of im2col convolutions on a GPU, from their memory traffic."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dse.core.values import Floats, Ints
from dse_evaluators.kernels.im2col_traffic import ELEMENT_BYTES, Im2colTile, Im2colTraffic
from dse_evaluators.workloads.layers import Layer

LEVELS = ("compute", "l1", "l2", "dram")
"""Resources that can bound the time of a layer."""

_MOVED = ("l1", "l2", "input", "filter", "output")


@dataclass(frozen=True, slots=True, kw_only=True)
class Resources:
    """GPU resources of each design, in Hz, B/s and B; every field is (n,)."""

    sms: Floats
    clock: Floats
    macs_per_cycle: Floats
    l1_bandwidth: Floats
    l2_bandwidth: Floats
    dram_bandwidth: Floats
    l2_size: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Im2colTotals:
    """Time, traffic and largest utilization of n designs over the layers added so far, (n,)."""

    seconds: dict[str, Floats]
    elements: dict[str, Floats]
    busiest: dict[str, Floats]
    """Largest utilization of each level over the layers, as a share of the layer's time."""

    @staticmethod
    def empty(size: int) -> Im2colTotals:
        """Return totals that are zero, for ``size`` designs."""
        return Im2colTotals(
            seconds={name: np.zeros(size) for name in (*LEVELS, "edge")},
            elements={name: np.zeros(size) for name in _MOVED},
            busiest={name: np.zeros(size) for name in LEVELS},
        )

    def add(
        self,
        layer: Layer,
        counted: Sequence[tuple[Im2colTile, Im2colTraffic]],
        place: Ints,  # (n,), index into ``counted`` of each design
        times: Floats,  # (n,), number of runs of the layer
        resources: Resources,
    ) -> None:
        """Add the time and traffic of ``times`` runs of one layer to the totals of every design."""
        moved = _count_elements(counted, place, resources)
        seconds = _seconds(layer, counted, place, moved, resources)
        stacked = np.stack([seconds[name] for name in LEVELS])  # (4, n)
        longest, slowest = stacked.max(axis=0), stacked.argmax(axis=0)
        for which, name in enumerate(LEVELS):
            self.seconds[name] += np.where(slowest == which, times * longest, 0.0)
            busy = np.where(times > 0, stacked[which] / longest, 0.0)
            np.maximum(self.busiest[name], busy, out=self.busiest[name])
        self.seconds["edge"] += times * seconds["edge"]
        for name in _MOVED:
            self.elements[name] += times * moved[name]


def _count_elements(
    counted: Sequence[tuple[Im2colTile, Im2colTraffic]], place: Ints, resources: Resources
) -> dict[str, Floats]:
    """Return the elements that one layer moves through L1, L2 and DRAM, by name, each (n,)."""
    every = [one for _, one in counted]
    thresholds = np.array([one.thresholds for one in every])  # (c, 4)
    size = resources.l2_size / ELEMENT_BYTES
    regime = np.sum([at[place] <= size for at in thresholds.T], axis=0)
    return {
        "l1": np.array([one.l1 for one in every])[place],
        "l2": np.array([one.l2 for one in every])[place],
        "input": np.array([one.inputs for one in every])[place, regime],
        "filter": np.array([one.filters for one in every])[place, regime],
        "output": np.array([one.outputs for one in every])[place],
    }


def _seconds(
    layer: Layer,
    counted: Sequence[tuple[Im2colTile, Im2colTraffic]],
    place: Ints,
    moved: dict[str, Floats],
    resources: Resources,
) -> dict[str, Floats]:
    """Return the seconds that compute, L1, L2 and DRAM alone take for one layer, each (n,).

    ``edge`` is the time of the first loads and of writing the outputs. Every wave computes full
    tiles. The data of each tile's first step must arrive through L2 before the tile can begin;
    outputs are written after everything else.
    """
    depth = layer.weights_per_filter
    macs = [
        one.waves * tile.rows * tile.cols * -(-depth // tile.depth) * tile.depth
        for tile, one in counted
    ]
    first = np.array([one.tiles * (t.rows + t.cols) * t.depth for t, one in counted])[place]
    return {
        "compute": np.array(macs, dtype=float)[place] / resources.macs_per_cycle / resources.clock,
        "l1": moved["l1"] * ELEMENT_BYTES / (resources.l1_bandwidth * resources.sms),
        "l2": moved["l2"] * ELEMENT_BYTES / resources.l2_bandwidth,
        "dram": (moved["input"] + moved["filter"]) * ELEMENT_BYTES / resources.dram_bandwidth,
        "edge": first * ELEMENT_BYTES / resources.l2_bandwidth
        + moved["output"] * ELEMENT_BYTES / resources.dram_bandwidth,
    }
