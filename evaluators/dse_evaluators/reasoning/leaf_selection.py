"""Selection of a tree's leaves by an integer program: scores, shared nodes, and classes."""

from __future__ import annotations

import numpy as np

from dse.core.values import Floats, Ints, Mask


def select_leaves(paths: Ints, kind: Ints, share: Floats, cost: float, diversity: float) -> Mask:
    """Select leaves of a search tree by an integer program; return a mask, (n,).

    The objective is the total score, minus a cost of nodes, plus a weight of diversity.

    Args:
        paths: nodes on the path of each leaf, itself among them, (n, steps).
        kind: semantic class of each leaf, (n,).
        share: share of the width that the leaf's score earns, (n,).
        cost: weight of the share of the nodes that the selected leaves need.
        diversity: weight of the share of the classes that are among them.

    Raises:
        RuntimeError: the solver found no optimum.

    Source:
        Hooper et al.: ETS, 2025: the objective; here scores and nodes are shares of their sums.
    """
    from scipy.optimize import Bounds, LinearConstraint, milp  # slow to import

    names, node = np.unique(paths, return_inverse=True)
    classes, group = np.unique(kind, return_inverse=True)
    leaves, nodes = len(share), len(names)
    # Variables: leaves are selected, nodes are held, classes remain.
    gain = np.concatenate(
        [share, np.full(nodes, -cost / nodes), np.full(len(classes), diversity / len(classes))]
    )
    leaf = np.repeat(np.arange(leaves), paths.shape[1])
    needs = np.zeros((len(leaf), len(gain)))  # a node is held if a leaf below it is selected
    needs[np.arange(len(leaf)), leaf] = -1.0
    needs[np.arange(len(leaf)), leaves + node.ravel()] = 1.0
    remain = np.zeros((len(classes), len(gain)))  # a class remains if one of its leaves does
    remain[group, np.arange(leaves)] = 1.0
    remain[np.arange(len(classes)), leaves + nodes + np.arange(len(classes))] = -1.0
    some = np.zeros((1, len(gain)))
    some[0, :leaves] = 1.0
    found = milp(
        -gain,
        constraints=[
            LinearConstraint(np.vstack([needs, remain]), 0.0, np.inf),
            LinearConstraint(some, 1.0, np.inf),
        ],
        bounds=Bounds(0.0, 1.0),
        integrality=np.ones(len(gain)),
    )
    if found.x is None:
        raise RuntimeError(f"no selection of {leaves} leaves: {found.message}")
    selected: Mask = found.x[:leaves] > 0.5
    return selected
