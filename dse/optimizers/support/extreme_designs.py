"""Designs at the two ends of a space: all ordered parameters at their lowest or highest values."""

from __future__ import annotations

import numpy as np

from dse.core.batch import Batch, concatenate_batches
from dse.core.legal_set.component import Component
from dse.core.legal_set.decision_diagram import Codes
from dse.core.parameter import Choice
from dse.core.space import DesignSpace
from dse.core.values import Floats

MANY = 10
"""Least number of ordered parameters for which the ends are among the first designs."""

_DRAWN = 1_024
"""Combinations that are drawn from a component with too many to list."""


def has_many_ordered(space: DesignSpace) -> bool:
    """Return whether all parameters are discrete and at least :data:`MANY` of them have an order.

    With so many parameters, a few space-filling designs differ little in the sum of their ranks,
    along which metrics of size, such as memory or time, vary most. Real parameters are left out:
    at the ends of their ranges, formulas often have poles, whose values spoil a Gaussian process.
    """
    ordered = [one for one in space.parameters if not isinstance(one, Choice)]
    return not space.legal.reals and len(ordered) >= MANY


def draw_extremes(space: DesignSpace, rng: np.random.Generator) -> Batch:
    """Return the legal designs of least and of largest ranks of the ordered parameters.

    Each group of parameters that rules couple takes its legal combination of least, or largest, sum
    of relative ranks. An inactive parameter counts as at its lowest, since what is absent has no
    size; a categorical one does not count; ties are drawn. Of a group with too many combinations to
    list, the best of a sample is taken. A rule over real parameters can exclude a design.

    Args:
        space: a space with at least one legal design.
        rng: generator of the draws.
    """
    legal = space.legal
    found = []
    for sign in (1.0, -1.0):
        codes = [_pick_row(component, sign, rng) for component in legal.components]
        found.append(legal.assemble(codes, np.full((1, len(legal.reals)), 0.5 - 0.5 * sign)))
    return concatenate_batches(found)


def _pick_row(component: Component, sign: float, rng: np.random.Generator) -> Codes:
    """Return the combination of the least ``sign`` times the sum of ranks, (1, k)."""
    rows = component.rows if component.rows is not None else component.sample(_DRAWN, rng)
    ranks = sign * _sum_ranks(component, rows)
    return rows[[rng.choice(np.flatnonzero(np.isclose(ranks, ranks.min())))]]


def _sum_ranks(component: Component, rows: Codes) -> Floats:
    """Return the sum of the relative ranks, from 0 to 1 each, of combinations (n, k), (n,)."""
    total = np.zeros(len(rows))
    for parameter, codes in zip(component.parameters, rows.T, strict=True):
        top = len(parameter.values) - 1
        if isinstance(parameter, Choice) or not top:
            continue
        total += np.maximum(codes, 0) / top
    return total
