"""Cells of four operations, each with one input, and the cells that compute the same."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dse.core.values import Ints, Mask

NODES = 4
"""Operations of a cell."""

Hashes = NDArray[np.uint64]

_DIRECT = np.uint64(1)
"""Stands for the link of an operation to the output, beside its other successors."""


def hash_cells(
    inputs: Ints,  # (n, 4), the node that each operation reads: 0 is the cell's input
    operations: Ints,  # (n, 4), codes
    skip: int,
) -> Hashes:
    """Return a number for each cell, (n,), that is equal for cells that compute the same.

    The output of a cell joins the operations that no other operation reads. The hash is that of the
    nested multisets of operations on the paths from input to output, so the order of siblings has
    no effect. The operation ``skip`` is the identity: operations that read it count as reading its
    input. A ``skip`` that nothing reads links its input to the output; this link is kept if other
    operations read that input, otherwise the ``skip`` is left out. The input of the cell itself is
    never linked to the output. A cell with ``skip`` operations only has the hash 0.
    """
    count = len(operations)
    rows = np.arange(count)
    skips = operations == skip
    untouched = _find_untouched(inputs, skips)
    successors = np.zeros((count, NODES + 1), dtype=np.int64)
    for node in range(NODES):
        np.add.at(successors, (rows, inputs[:, node]), 1)
    beneath = np.zeros((count, NODES + 1), dtype=np.uint64)
    with np.errstate(over="ignore"):
        for node in range(NODES, 0, -1):
            parent, under = inputs[:, node - 1], beneath[:, node]
            labelled = _mix(under + _mix(operations[:, node - 1].astype(np.uint64) + _DIRECT + 1))
            alone = successors[rows, parent] == 1
            link = np.where(alone | untouched[:, node], np.uint64(0), _mix(_DIRECT * np.ones(1)))
            identity = np.where(under == 0, link, under)
            beneath[rows, parent] += np.where(skips[:, node - 1], identity, labelled)
    return beneath[:, 0]


def _find_untouched(inputs: Ints, skips: Mask) -> Mask:
    """Return whether each node's value is the cell's input, node 0 included, (n, 5)."""
    rows = np.arange(len(inputs))
    found = np.ones((len(inputs), NODES + 1), dtype=np.bool_)
    for node in range(1, NODES + 1):
        found[:, node] = skips[:, node - 1] & found[rows, inputs[:, node - 1]]
    return found


def _mix(values: NDArray[np.generic]) -> Hashes:
    """Return pseudo-random numbers of 64 bits, a permutation of all of them.

    Source:
        Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, 2014 (SplitMix64).
    """
    state = values.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return state ^ (state >> np.uint64(31))
