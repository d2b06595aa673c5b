"""Min-conflicts local search for one legal combination, for use where random draws find none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from dse.core.batch import Column
from dse.core.expressions.expression import Expression
from dse.core.expressions.syntax import Compare, Logic
from dse.core.legal_set.component import Component
from dse.core.legal_set.decision_diagram import Codes
from dse.core.values import Floats

_STARTS = 8
_STEPS = 400
_MOST_VALUES = 400
_MOST_CELLS = 3_000_000
"""Most values that a search evaluates before it gives up."""


def witness(component: Component) -> Codes:
    """Search for one legal combination of k parameters; return (1, k), or (0, k) if none is found.

    The search starts from random draws of a superset and from combinations in which all parameters
    have equal value indices (all lowest, ..., all highest). It changes one parameter at a time to
    reduce the violation of the rules (min-conflicts).

    Source:
        Minton et al.: Minimizing Conflicts, Artificial Intelligence 58, 1992.
    """
    rng = np.random.default_rng(0)
    if not component.bound:
        return component.none
    starts = _starts(component, rng)
    keep = component.legal(starts)
    if keep.any():
        return starts[keep][:1]
    lows = [-1 if name in component.conditions else 0 for name in component.names]
    sizes = [len(parameter.values) for parameter in component.parameters]
    steps = min(_STEPS, max(_MOST_CELLS // (len(sizes) * _MOST_VALUES * _STARTS), 20))
    for row in starts[:_STARTS]:
        found = _descend(component, row, lows, sizes, steps, rng)
        if len(found):
            return found
    return component.none


def _starts(component: Component, rng: np.random.Generator) -> Codes:
    drawn = component.diagram.draw(_STARTS, rng)
    width = len(component.parameters)
    tops = np.array([len(parameter.values) - 1 for parameter in component.parameters])
    most = int(tops.max(initial=0)) + 1
    same = np.minimum(np.arange(min(most, 64))[:, None], tops[None, :])
    return np.concatenate([drawn, same, tops[None, :]]).astype(np.int32).reshape(-1, width)


def _descend(
    component: Component,
    row: Codes,
    lows: Sequence[int],
    sizes: Sequence[int],
    steps: int,
    rng: np.random.Generator,
) -> Codes:
    """Reduce the violation step by step from ``row``; return a legal combination, if found.

    Each step takes the change of one parameter that leaves the least violation; ties are broken at
    random.
    """
    here = row.copy()
    for _ in range(steps):
        tries = _vary_row(component, here, lows, sizes, rng)
        broken = _broken(component, tries)
        best = rng.choice(np.flatnonzero(broken <= broken.min() + 1e-12))
        here = tries[best]
        if broken[best] == 0 and component.legal(here[None, :])[0]:
            return here[None, :]
    return component.none


def _vary_row(
    component: Component,
    row: Codes,
    lows: Sequence[int],
    sizes: Sequence[int],
    rng: np.random.Generator,
) -> Codes:
    """Return copies of a combination, each with another value of one parameter.

    Only parameters that a violated rule reads are changed, or any if no rule is violated.
    """
    names = set[str]()
    columns = component.columns(row[None, :])
    for rule in component.constraints:
        if not rule.holds(columns, 1, unknown=True)[0]:
            names |= rule.names
    read = [place for place, name in enumerate(component.names) if name in names]
    places, low = np.array(read or range(len(row))), np.array(lows)
    others = np.array(sizes)[places] - low[places] - 1  # of each parameter
    total = int(others.sum())
    picks = np.arange(total)
    if total > _MOST_VALUES:
        picks = rng.choice(total, _MOST_VALUES, replace=False)
    first = np.cumsum(others)
    which = np.searchsorted(first, picks, side="right")
    place = places[which]
    code = low[place] + picks - (first - others)[which]
    tries = np.repeat(row[None, :], max(len(picks), 1), axis=0)
    tries[np.arange(len(picks)), place] = code + (code >= row[place])
    return tries


def _broken(component: Component, rows: Codes) -> Floats:
    """Return the violation of each of r combinations, (r,), summed over the violated rules.

    A violated comparison adds 0.5 to 1, by the relative difference of its sides; any other rule or
    a condition adds 1.
    """
    columns = component.columns(rows)
    total = np.zeros(len(rows))
    for rule in component.constraints:
        off = ~rule.holds(columns, len(rows), unknown=True)
        total += off * (0.5 + 0.5 * _miss(rule, columns, len(rows)))
    for place, name in enumerate(component.names):
        condition = component.conditions.get(name)
        if condition is not None:
            active = condition.holds(columns, len(rows), unknown=False)
            total += active != (rows[:, place] >= 0)
    return total


def _miss(rule: Expression, columns: Mapping[str, Column], size: int) -> Floats:
    """Return the relative difference of a comparison's two sides, (n,); 1 for any other rule."""
    node = rule.node
    if isinstance(node, Logic) or not isinstance(node, Compare) or len(node.operands) != 2:
        return np.ones(size)
    left, right = (Expression("", side).values(columns, size).values for side in node.operands)
    if left.dtype.kind not in "biuf" or right.dtype.kind not in "biuf":
        return np.ones(size)
    a, b = left.astype(float), right.astype(float)
    with np.errstate(all="ignore"):
        share = np.abs(a - b) / (np.abs(a) + np.abs(b))
    return np.where(np.isfinite(share), share, 1.0)
