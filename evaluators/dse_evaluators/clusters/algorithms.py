"""Collectives over nodes by their algorithm: rings, trees, and one level after the other."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from dse.core.values import Floats
from dse_evaluators.clusters.collectives import Collective, compute_link_share

_UP_AND_DOWN = 2.0 / 0.9
"""How often a tree's link carries the array, at the share of a ring's rate that NCCL expects of it:
NVIDIA/nccl@01afd20, src/graph/tuning.cc. Between two nodes once would do; no measurement at hand
shows it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Ranks of n collectives, and the links that join them; every field is (n,).

    ``near`` is among those of one node, ``far`` is what one of them has between nodes.
    """

    inside: Floats
    """Ranks in each node."""
    nodes: Floats
    near_latency_s: Floats
    near_bytes_per_s: Floats
    far_latency_s: Floats
    far_bytes_per_s: Floats
    gap_s: Floats
    """Between two messages of one rank to other nodes."""
    far_pipelining: float = 0.0
    """The share of the best pipeline's price between nodes, as in ``collectives.seconds``."""

    @property
    def ranks(self) -> Floats:
        return self.inside * self.nodes

    @property
    def stepped_s(self) -> Floats:
        """Latency of passing a node's own ranks once; 0 where there is but one."""
        return np.where(self.inside > 1.0, self.near_latency_s, 0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Took:
    """Seconds of a collective, in parts that sum; every field is (n,)."""

    latency_s: Floats
    near_s: Floats
    """What links within nodes carry, as far as it is not hidden."""
    far_s: Floats
    """What links between nodes carry, as far as it is not hidden."""

    @property
    def total_s(self) -> Floats:
        return self.latency_s + self.near_s + self.far_s


def ring(collective: Collective, size_bytes: Floats, group: Group) -> Took:
    """One ring through all ranks of each node, as many times at once as it has ranks in a node.

    It goes through every node's inside once, and between nodes one time less than there are nodes;
    an all-reduce goes round twice. All links carry as much, so the slowest decides. An all-to-all
    is sent to every other rank at once, and what goes within nodes hides behind what goes between.

    Source:
        Thakur, Rabenseifner, Gropp, 2005, sections 3-4; NCCL's own model of its algorithms,
        NVIDIA/nccl@01afd20, src/graph/tuning.cc (steps within and between nodes).
    """
    if collective == "all_to_all":
        return _pairwise(size_bytes, group)
    turns = 2.0 if collective == "all_reduce" else 1.0
    waits_s = turns * (group.nodes - 1.0) * group.far_latency_s
    moved_bytes = compute_link_share(collective, group.ranks) * size_bytes
    return _slowest(moved_bytes, group.nodes * group.stepped_s, waits_s, group)


def tree(collective: Collective, size_bytes: Floats, group: Group) -> Took:
    """A pair of trees over the nodes, each with half of the array; ranks of a node are a chain.

    Every link carries the array up and down. A gather or scatter doubles or halves what it has in
    each of log2 steps, an all-to-all sends half of the array in each.

    Source:
        Sanders, Speck, Traff: Two-Tree Algorithms for Full Bandwidth Broadcast, Reduction and Scan,
        2009; NVIDIA/nccl@01afd20, src/graph/tuning.cc; Thakur 2005, sections 3.1, 3.3 (Bruck).
    """
    steps = np.ceil(np.log2(group.nodes))
    if collective == "all_to_all":
        rounds = np.ceil(np.log2(group.ranks))
        far_s = rounds * size_bytes / 2.0 / group.far_bytes_per_s
        return _apart(np.zeros_like(far_s), rounds * group.far_latency_s, far_s, group)
    turns = 2.0 if collective == "all_reduce" else 1.0
    share = _UP_AND_DOWN if turns > 1.0 else compute_link_share(collective, group.ranks)
    waits_s = turns * steps * group.far_latency_s
    return _slowest(share * size_bytes, group.stepped_s, waits_s, group)


def hierarchical(collective: Collective, size_bytes: Floats, group: Group) -> Took:
    """Within nodes, then between them with each rank's own part of the array, then within.

    Between nodes the faster of ring and tree. An all-to-all gathers within the node what goes to
    the same other one, and sends one message to each.

    Source:
        Jia et al.: Highly Scalable Deep Learning Training System with Mixed-Precision, 2018,
        section 3.4 (hierarchical all-reduce).
    """
    near_s = compute_link_share(collective, group.inside) * size_bytes / group.near_bytes_per_s
    if collective == "all_to_all":
        far_s = compute_link_share(collective, group.nodes) * size_bytes / group.far_bytes_per_s
        messages_s = np.maximum(group.nodes - 2.0, 0.0) * group.gap_s
        return _apart(near_s, group.far_latency_s + messages_s, far_s, group)
    part = size_bytes / group.inside
    turns, steps = 2.0 if collective == "all_reduce" else 1.0, np.ceil(np.log2(group.nodes))
    share = compute_link_share(collective, group.nodes)
    by_ring, by_tree = (
        _apart(near_s, times * group.far_latency_s, moved, group)
        for times, moved in (
            (turns * (group.nodes - 1.0), share * part / group.far_bytes_per_s),
            (
                turns * steps,
                (_UP_AND_DOWN if turns > 1.0 else share) * part / group.far_bytes_per_s,
            ),
        )
    )
    return _faster(by_ring, by_tree)


def auto(collective: Collective, size_bytes: Floats, group: Group) -> Took:
    """Run an all-reduce by the faster of ring and tree, all else by a ring, as NCCL does.

    Source:
        NVIDIA/nccl@01afd20, src/graph/tuning.cc (only an all-reduce has trees).
    """
    by_ring = ring(collective, size_bytes, group)
    if collective != "all_reduce":
        return by_ring
    return _faster(by_ring, tree(collective, size_bytes, group))


Algorithm = Callable[[Collective, Floats, Group], Took]

ALGORITHMS: Mapping[str, Algorithm] = {
    "auto": auto,
    "ring": ring,
    "tree": tree,
    "hierarchical": hierarchical,
}


def _slowest(moved_bytes: Floats, steps_s: Floats, waits_s: Floats, group: Group) -> Took:
    """Return the time of a transfer over all links at once; the slowest link decides."""
    near_s = np.where(group.inside > 1.0, moved_bytes / group.near_bytes_per_s, 0.0)
    far_s = _add_pipelining(waits_s, moved_bytes / (group.inside * group.far_bytes_per_s), group)
    return _hidden(steps_s + waits_s, near_s, far_s)


def _pairwise(size_bytes: Floats, group: Group) -> Took:
    ranks, others = group.ranks, group.ranks - group.inside
    near_s = (group.inside - 1.0) / ranks * size_bytes / group.near_bytes_per_s
    waits_s = group.far_latency_s + np.maximum(others - 1.0, 0.0) * group.gap_s
    far_s = _add_pipelining(waits_s, others / ranks * size_bytes / group.far_bytes_per_s, group)
    return _hidden(group.stepped_s + waits_s, near_s, far_s)


def _hidden(latency_s: Floats, near_s: Floats, far_s: Floats) -> Took:
    """Of two that go on at once, the longer hides the other."""
    near = near_s > far_s
    return Took(
        latency_s=latency_s, near_s=np.where(near, near_s, 0.0), far_s=np.where(near, 0.0, far_s)
    )


def _apart(near_s: Floats, waits_s: Floats, far_s: Floats, group: Group) -> Took:
    """Within nodes and between them, one after the other."""
    return Took(
        latency_s=group.stepped_s + waits_s,
        near_s=near_s,
        far_s=_add_pipelining(waits_s, far_s, group),
    )


def _add_pipelining(waits_s: Floats, far_s: Floats, group: Group) -> Floats:
    """Return the time of links between nodes, with the cost of cutting data into pieces."""
    if not group.far_pipelining:
        return far_s
    return far_s + 2.0 * group.far_pipelining * np.sqrt(waits_s * far_s)


def _faster(one: Took, other: Took) -> Took:
    first = one.total_s <= other.total_s
    return Took(
        latency_s=np.where(first, one.latency_s, other.latency_s),
        near_s=np.where(first, one.near_s, other.near_s),
        far_s=np.where(first, one.far_s, other.far_s),
    )
