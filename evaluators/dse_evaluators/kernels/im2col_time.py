"""Time that a GPU takes for convolutions whose traffic is known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dse.core.values import Floats, Ints
from dse_evaluators.kernels.im2col_traffic import ELEMENT_BYTES, Im2colTile, Im2colTraffic
from dse_evaluators.workloads.layers import Layer

LEVELS = ("compute", "l1", "l2", "dram")
"""What a layer may wait for."""

_MOVED = ("l1", "l2", "input", "filter", "output")


@dataclass(frozen=True, slots=True, kw_only=True)
class Resources:
    """Resources of the GPU of each design; each (n,), as in :class:`.gpus.Gpu`."""

    sms: Floats
    clock: Floats
    macs_per_cycle: Floats
    l1_bandwidth: Floats
    l2_bandwidth: Floats
    dram_bandwidth: Floats
    l2_size: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Im2colTotals:
    """The sums over the layers that were added so far; each column (n,)."""

    seconds: dict[str, Floats]
    elements: dict[str, Floats]
    busiest: dict[str, Floats]
    """The largest share of a layer's time for which each level works."""

    @staticmethod
    def empty(size: int) -> Im2colTotals:
        """Nothing has run yet."""
        return Im2colTotals(
            seconds={name: np.zeros(size) for name in (*LEVELS, "edge")},
            elements={name: np.zeros(size) for name in _MOVED},
            busiest={name: np.zeros(size) for name in LEVELS},
        )

    def add(
        self,
        layer: Layer,
        counted: Sequence[tuple[Im2colTile, Im2colTraffic]],
        place: Ints,  # (n,), which of them each design has
        times: Floats,  # (n,), how often the layer runs
        resources: Resources,
    ) -> None:
        """Run one layer in every design."""
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
    """Return the elements that one layer moves, each (n,)."""
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
    """Return the seconds of each level for one layer, and those before and after, each (n,).

    Every wave computes whole tiles. The first step of each tile arrives through L2 before it can
    begin; outputs are written when all else is done.
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
