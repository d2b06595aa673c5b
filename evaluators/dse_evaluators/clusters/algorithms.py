"""Time of collectives over nodes by algorithm: ring, tree, hierarchical, or NCCL's choice."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from dse.core.values import Floats
from dse_evaluators.clusters.collectives import Collective, compute_link_share

_UP_AND_DOWN = 2.0 / 0.9
"""Traversals of a tree's link by the array, over the expected rate of a tree relative to a ring.

NVIDIA/nccl@01afd20, src/graph/tuning.cc. Between two nodes one traversal would suffice, but no
available measurement shows that.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Group of ranks that take part in a collective, and the links between them, for n designs.

    Every field is (n,). ``near`` fields describe links within a node, ``far`` fields one rank's
    share of the links between nodes.
    """

    inside: Floats
    """Ranks in each node."""
    nodes: Floats
    near_latency_s: Floats
    near_bytes_per_s: Floats
    far_latency_s: Floats
    far_bytes_per_s: Floats
    gap_s: Floats
    """Time between two messages of one rank to other nodes."""
    far_pipelining: float = 0.0
    """Pipelining coefficient p of ``collectives.seconds``, for the links between nodes."""

    @property
    def ranks(self) -> Floats:
        return self.inside * self.nodes

    @property
    def stepped_s(self) -> Floats:
        """Latency [s] of one traversal of all ranks of a node; 0 where a node has one rank."""
        return np.where(self.inside > 1.0, self.near_latency_s, 0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Took:
    """Time of n collective operations, split into latency and transfers; every field is (n,)."""

    latency_s: Floats
    near_s: Floats
    """Transfer time within nodes that is not hidden by other transfers."""
    far_s: Floats
    """Transfer time between nodes that is not hidden by other transfers."""

    @property
    def total_s(self) -> Floats:
        return self.latency_s + self.near_s + self.far_s


def ring(collective: Collective, size_bytes: Floats, group: Group) -> Took:
    """Return the time of a collective over parallel rings, each through one rank of every node.

    The latency is one traversal inside every node plus ``nodes - 1`` steps between nodes (twice as
    many steps for an all-reduce). All links carry the same traffic, so the slowest sets the time.
    An all-to-all sends to all other ranks at once; transfers within and between nodes overlap, and
    only the longer one counts.

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
    """Return the time of a collective over NCCL's two trees of nodes, each with half of the array.

    The ranks of a node form a chain. An all-reduce sends the array up and down every link. A gather
    or scatter doubles or halves its data in each of log2(nodes) steps; an all-to-all sends half of
    the array in each of log2(ranks) steps.

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
    """Return the time of a hierarchical collective: within nodes, between nodes, within nodes.

    Between nodes each rank exchanges its own share of the array, by the faster of ring and tree. An
    all-to-all first gathers, within a node, the data for each other node, and sends it to that node
    in one message.

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
    """Return a collective's time by ring or, for an all-reduce, the faster of ring and tree.

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
    """Return the time of a collective that uses all links at once; the slowest link decides.

    ``steps_s`` and ``waits_s`` are the latencies of the collective within and between nodes.
    """
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
    """Return the time of concurrent transfers within and between nodes; only the longer counts."""
    near = near_s > far_s
    return Took(
        latency_s=latency_s, near_s=np.where(near, near_s, 0.0), far_s=np.where(near, 0.0, far_s)
    )


def _apart(near_s: Floats, waits_s: Floats, far_s: Floats, group: Group) -> Took:
    """Return the time of a transfer within nodes and a subsequent transfer between nodes."""
    return Took(
        latency_s=group.stepped_s + waits_s,
        near_s=near_s,
        far_s=_add_pipelining(waits_s, far_s, group),
    )


def _add_pipelining(waits_s: Floats, far_s: Floats, group: Group) -> Floats:
    """Return the transfer time between nodes, with the overhead of pipelining pieces of the data.

    The result is ``t + 2 p sqrt(a t)`` with transfer time t, latency a, pipelining coefficient p.
    """
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
