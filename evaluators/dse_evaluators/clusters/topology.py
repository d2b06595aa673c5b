"""Time of collectives on a system, by the placement of the ranks on its nodes."""

from __future__ import annotations

from functools import cache

import numpy as np

from dse.core.values import Floats
from dse_evaluators.clusters.algorithms import ALGORITHMS, Group, Took
from dse_evaluators.clusters.collectives import Collective, ConstantColumns, seconds
from dse_evaluators.clusters.systems import System

_AT_ONCE = 16_384
"""Rows per chunk, so that the arrays of a chunk fit into a CPU cache."""


def neighbours_s(
    system: System, collective: Collective, size_bytes: Floats, ranks: Floats
) -> Floats:
    """Return the seconds of a collective among ``ranks`` devices of one node, (n,)."""
    ranks = np.asarray(ranks, dtype=np.float64)
    return seconds(collective, size_bytes, ranks, _within(system, collective, ranks))


def spread_s(
    system: System, collective: Collective, size_bytes: Floats, ranks: Floats, *, apart: Floats
) -> Floats:
    """Return the seconds of n collectives whose ranks are every ``apart``-th device, (n,).

    If ``apart * ranks`` devices fit into a node, the collective stays within it; otherwise it
    crosses nodes by the algorithm that NCCL chooses. All other devices of a node are assumed to run
    the same collective at that time.
    """
    shape = np.broadcast_shapes(np.shape(size_bytes), np.shape(ranks), np.shape(apart))
    columns = [
        np.broadcast_to(np.asarray(one, dtype=np.float64), shape)
        for one in (size_bytes, ranks, apart)
    ]
    found = np.empty(shape)
    for start in range(0, len(found), _AT_ONCE):
        size, count, stride = (one[start : start + _AT_ONCE] for one in columns)
        inside = ranks_inside(system, count, stride)
        near, far = np.flatnonzero(inside >= count), np.flatnonzero(inside < count)
        if len(near):
            found[start + near] = neighbours_s(system, collective, size[near], count[near])
        if len(far):
            group = group_of(system, collective, inside[far], count[far], alone=False)
            found[start + far] = ALGORITHMS["auto"](collective, size[far], group).total_s
    return found


def spread(
    system: System,
    collective: Collective,
    size_bytes: Floats,
    ranks: Floats,
    *,
    apart: Floats,
    algorithm: str = "auto",
    alone: bool = False,
) -> Took:
    """Return the seconds of n collectives, split into latency and transfers in and between nodes.

    Ranks are every ``apart``-th device; each part is (n,). ``algorithm`` applies between nodes;
    within a node the measured time of the library is used. With ``alone``, no other device of a
    node communicates.
    """
    inside = ranks_inside(system, ranks, apart)
    group = group_of(system, collective, inside, ranks, alone=alone)
    near_s = neighbours_s(system, collective, size_bytes, inside)
    went, far = ALGORITHMS[algorithm](collective, size_bytes, group), inside < ranks
    return Took(
        latency_s=np.where(far, went.latency_s, group.stepped_s),
        near_s=np.where(far, went.near_s, near_s - group.stepped_s),
        far_s=np.where(far, went.far_s, 0.0),
    )


def ranks_inside(system: System, ranks: Floats, apart: Floats) -> Floats:
    """Return the number of ranks on each node, if placed ``apart`` devices apart, (n,)."""
    return np.minimum(ranks, np.maximum(np.floor(system.node_devices / apart), 1.0))


def group_of(
    system: System, collective: Collective, inside: Floats, ranks: Floats, *, alone: bool
) -> Group:
    """Return sizes, latencies and bandwidths of n collectives' groups of ranks, each (n,).

    ``inside`` is the number of ranks of a group in each node.
    """
    near = _within(system, collective, inside)
    network, nodes = system.network, np.ceil(ranks / inside)
    busy = inside if alone else np.full(inside.shape, float(system.node_devices))
    share = network.message_share if collective == "send_recv" else network.share
    return Group(
        inside=ranks / nodes,  # the mean, where nodes hold unequal numbers of ranks
        nodes=nodes,
        near_latency_s=near.latency_s,
        near_bytes_per_s=near.bytes_per_s,
        far_latency_s=np.full(inside.shape, network.latency_s),
        far_bytes_per_s=share(busy),
        gap_s=network.gap_s(busy),
        far_pipelining=network.pipelining,
    )


def _within(system: System, collective: Collective, ranks: Floats) -> ConstantColumns:
    """Return latency, bandwidth and pipelining of n collectives in a node, by ranks, (n,) each."""
    return _by_ranks(system, collective).take(np.minimum(ranks, system.node_devices))


@cache
def _by_ranks(system: System, collective: Collective) -> ConstantColumns:
    """Return the constants of a collective in a node, by 0 to ``node_devices`` ranks."""
    known = [system.within(collective, ranks) for ranks in range(2, system.node_devices + 1)]
    return ConstantColumns.by_ranks(known)
