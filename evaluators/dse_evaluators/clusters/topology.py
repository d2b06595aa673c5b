"""How long collectives take on a system, by where its ranks are."""

from __future__ import annotations

import numpy as np

from dse.core.values import Floats
from dse_evaluators.clusters.collectives import Collective, seconds
from dse_evaluators.clusters.systems import System


def neighbours_s(
    system: System, collective: Collective, size_bytes: Floats, ranks: Floats
) -> Floats:
    """The time of a collective among devices of one node, (n,)."""
    found = np.zeros(np.broadcast_shapes(np.shape(size_bytes), np.shape(ranks)))
    for count in np.unique(ranks).tolist():
        if count > 1:
            rows = np.broadcast_to(ranks == count, found.shape)
            some = np.broadcast_to(size_bytes, found.shape)[rows]
            found[rows] = seconds(collective, some, count, system.within(collective, int(count)))
    return found


def spread_s(
    system: System, collective: Collective, size_bytes: Floats, ranks: Floats, *, apart: Floats
) -> Floats:
    """The time of a collective among ranks with ``apart`` devices from one to the next, (n,).

    ``apart * ranks`` devices that fit into a node talk within it, all others between nodes.
    """
    near_s = neighbours_s(system, collective, size_bytes, np.minimum(ranks, system.node_devices))
    far_s = seconds(collective, size_bytes, ranks, system.between())
    return np.where(apart * ranks <= system.node_devices, near_s, far_s)
