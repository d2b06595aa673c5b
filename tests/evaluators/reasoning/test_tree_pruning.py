"""Pruned tree search: selections against all subsets, allotments, and the weights' effects."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from dse.core.batch import Batch
from dse_evaluators.reasoning.leaf_selection import select_leaves
from dse_evaluators.reasoning.tree_pruning import TreePruning, allot_width


def worth(kept, paths, kind, share, weights):
    """Objective of a subset of the leaves, by counting."""
    cost, diversity = weights
    held = len(np.unique(paths[kept])) / len(np.unique(paths))
    return (
        share[kept].sum()
        - cost * held
        + diversity * len(np.unique(kind[kept])) / len(np.unique(kind))
    )


@pytest.mark.parametrize("seed", range(6))
def test_the_selection_is_the_best_of_all_subsets(seed):
    rng = np.random.default_rng(seed)
    parents = rng.integers(3, size=7)
    paths = np.column_stack([np.zeros(7, dtype=int), 1 + parents, 4 + np.arange(7)])
    kind, share = rng.integers(4, size=7), rng.dirichlet(np.ones(7))
    weights = rng.uniform(0, 2, 2)
    subsets = [np.array(one, dtype=bool) for one in product((0, 1), repeat=7) if any(one)]
    best = max(worth(one, paths, kind, share, weights) for one in subsets)
    kept = select_leaves(paths, kind, share, *weights)
    assert worth(kept, paths, kind, share, weights) == pytest.approx(best, abs=1e-9)


def test_the_width_is_allotted_by_scores_to_the_last_leaf():
    found = allot_width(np.array([0.0, 1.0, -5.0]), 16, 0.5)
    assert found.tolist() == [1, 15, 0]
    assert allot_width(np.zeros(4), 8, 0.2).tolist() == [2, 2, 2, 2]


def test_a_larger_weight_of_nodes_holds_fewer_and_diversity_keeps_classes():
    designs = [
        {"width": 8, "cost_weight": cost, "diversity_weight": diversity}
        for cost, diversity in ((0.0, 0.0), (1.0, 0.0), (4.0, 0.0), (1.0, 2.0))
    ]
    found = TreePruning(problems=4, depth=3).evaluate(Batch.of(designs)).columns
    plain, little, much, diverse = found["cache_ratio"]
    assert plain == 1.0
    assert plain < little <= much
    assert diverse < little
    assert found["classes"][3] > found["classes"][1]
