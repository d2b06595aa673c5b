"""Gate graphs of integer programs under TFHE, where each gate is one bootstrap."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np

from dse.core.values import Ints

_Word = Sequence[int]
"""Gates that compute the bits of an integer, lowest bit first; -1 is an input or a constant."""


@dataclass(slots=True)
class GateGraph:
    """Graph of encrypted logic gates in topological order, with the gates that each reads.

    Attributes:
        sources: gates that each gate reads.
        levels: length of the longest path that ends at each gate, from 1.
    """

    sources: list[tuple[int, ...]] = field(default_factory=list)
    levels: list[int] = field(default_factory=list)

    def gate(self, *inputs: int) -> int:
        """Append a gate and return its number; inputs that are -1 are ready at the start."""
        sources = tuple(one for one in inputs if one >= 0)
        self.sources.append(sources)
        self.levels.append(1 + max((self.levels[one] for one in sources), default=0))
        return len(self.levels) - 1

    def add(self, left: _Word, right: _Word) -> list[int]:
        """Append a ripple-carry adder: two gates for the lowest bit, five for each other bit."""
        result, carry = [self.gate(left[0], right[0])], self.gate(left[0], right[0])
        for one, other in zip(left[1:], right[1:], strict=True):
            half = self.gate(one, other)
            result.append(self.gate(half, carry))
            both, through = self.gate(one, other), self.gate(half, carry)
            carry = self.gate(both, through)
        return result

    def multiply(self, bits: int) -> list[int]:
        """Append a product of two inputs, whose partial products are added one after another."""
        total = [self.gate(-1, -1) for _ in range(bits)]
        for place in range(1, bits):
            row = [self.gate(-1, -1) for _ in range(bits - place)]
            total[place:] = self.add(total[place:], row)
        return total

    @property
    def depth(self) -> int:
        """Length of the longest path of gates."""
        return max(self.levels)

    @property
    def widths(self) -> Ints:
        """Number of gates of each level, (depth,)."""
        return np.bincount(self.levels)[1:]


@lru_cache(maxsize=32)
def dot_product(length: int, bits: int, *, tree: bool) -> GateGraph:
    """Return the graph of a dot product of words, summed by a chain or by a tree."""
    graph = GateGraph()
    words = [graph.multiply(bits) for _ in range(length)]
    while len(words) > 1:
        if tree:
            pairs = zip(words[::2], words[1::2], strict=False)
            rest = words[len(words) - len(words) % 2 :]
            words = [graph.add(one, other) for one, other in pairs] + rest
        else:
            words = [graph.add(words[0], words[1]), *words[2:]]
    return graph


@lru_cache(maxsize=256)
def count_list_steps(graph_key: tuple[int, int, bool], slots: int) -> int:
    """Return the steps of a list schedule with the longest remaining path first.

    Args:
        graph_key: the arguments ``length``, ``bits`` and ``tree`` of :func:`dot_product`.
        slots: gates that run in one step on all devices.

    Source:
        Hu: Parallel Sequencing and Assembly Line Problems, 1961.
    """
    length, bits, tree = graph_key
    graph = dot_product(length, bits, tree=tree)
    count = len(graph.levels)
    readers: list[list[int]] = [[] for _ in range(count)]
    waiting = [len(set(sources)) for sources in graph.sources]
    for gate, sources in enumerate(graph.sources):
        for source in set(sources):
            readers[source].append(gate)
    remaining = [1] * count
    for gate in range(count - 1, -1, -1):
        remaining[gate] += max((remaining[one] for one in readers[gate]), default=0)
    ready = [(-remaining[gate], gate) for gate in range(count) if not waiting[gate]]
    heapq.heapify(ready)
    steps = 0
    while ready:
        steps += 1
        ran = [heapq.heappop(ready)[1] for _ in range(min(slots, len(ready)))]
        for reader in (one for gate in ran for one in readers[gate]):
            waiting[reader] -= 1
            if not waiting[reader]:
                heapq.heappush(ready, (-remaining[reader], reader))
    return steps
