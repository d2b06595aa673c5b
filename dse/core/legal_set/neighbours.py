"""Neighbours of a legal combination, and repair of an illegal one to the nearest legal one."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from itertools import combinations

import numpy as np

from dse.core.legal_set.component import Component
from dse.core.legal_set.decision_diagram import Codes
from dse.core.legal_set.permutations import Orders
from dse.core.legal_set.relaxed_budget import RelaxedBudget
from dse.core.parameter import Choice, Finite
from dse.core.values import Floats

WALKED_EDGES = 100_000
"""Largest graph, in edges, that is searched in full per move; above it, changes are random."""

_TRIES = 256
_MOST_SWAPS = 2_000
_MOST_SINGLES = 4_000


def near(component: Component, row: Codes) -> Codes:
    """Return the legal combinations nearest to ``row``, with one or two changed values.

    Under ``tp * pp * dp == gpus`` no parameter can change alone, so two change together. In a
    component too large to search, a few hundred random changes are tried instead.

    Args:
        component: the coupled parameters with their legal combinations.
        row: a combination, (k,); the result is (n, k) and does not contain it.
    """
    if component.rows is not None:
        return _near_in(component.rows, row)
    graph = component.diagram
    wide = graph.edges > WALKED_EDGES and not isinstance(graph, Orders)
    if wide or isinstance(graph, RelaxedBudget):
        return _near_by_trial(component, row)
    costs = [_changes(p, code) for p, code in zip(component.parameters, row, strict=True)]
    least = graph.least_other(costs, row)
    found = component.none
    for most in (max(least, 2), least):  # two changes may give too many designs, one may not
        more = graph.within(costs, most) if np.isfinite(most) else None
        if more is not None:
            found = more[(more != row).any(axis=1) & component.keeps_dropped_rules(more)]
            break
    return found if len(found) else _near_by_trial(component, row)


def nearest(
    component: Component,
    wanted: Codes,  # (n, k)
) -> Codes:
    """Return the nearest legal combination to each wanted one, (n, k).

    The distance is a fraction of the range for numbers and 1 between different choices; a parameter
    that is inactive in a combination adds no distance. In a component too large to search, or with
    rules that its decision diagram leaves out, the result is the nearest of a large uniform sample.
    A single permutation is built greedily: it is near, but possibly not the nearest.
    """
    if component.rows is not None:
        return _nearest_in(component, component.rows, wanted)
    graph = component.diagram
    wide = graph.edges > WALKED_EDGES and not isinstance(graph, Orders)
    if component.dropped or wide or isinstance(graph, RelaxedBudget):
        return _nearest_in(component, component.drawn, wanted)
    found = [
        graph.nearest([_costs(p, code) for p, code in zip(component.parameters, row, strict=True)])
        for row in wanted
    ]
    return np.stack(found) if found else component.none


def steps(
    component: Component,
    rows: Codes,  # (r, k)
    wanted: Codes,  # (k,)
) -> Floats:
    """Return the distance of each of r value combinations from a wanted one, (r,).

    The distance is a sum over parameters: a number adds the difference of the value indices as a
    fraction of the range, a differing choice 1.
    """
    total = np.zeros(len(rows))
    for place, parameter in enumerate(component.parameters):
        total += _costs(parameter, int(wanted[place]))[rows[:, place] + 1]
    return total


def _costs(parameter: Finite, wanted: int) -> Floats:
    """Return the distance of ``wanted`` from inactive (first) and each value, (values + 1,)."""
    size = len(parameter.values)
    if wanted < 0:
        costs = np.full(size, 0.5)
    elif isinstance(parameter, Choice):
        costs = (np.arange(size) != wanted).astype(float)
    else:
        costs = np.abs(np.arange(size) - wanted) / max(size - 1, 1)
    return np.concatenate([np.zeros(1), costs])


def _changes(parameter: Finite, code: int) -> Floats:
    costs = np.ones(len(parameter.values) + 1)
    costs[code + 1] = 0.0
    return costs


def _near_in(rows: Codes, row: Codes) -> Codes:
    distance = (rows != row).sum(axis=1)
    others = distance[distance > 0]
    if not len(others):
        return rows[:0]
    least = int(others.min())
    return rows[(distance >= least) & (distance <= max(least, 2))]


def _nearest_in(component: Component, rows: Codes, wanted: Codes) -> Codes:
    if not len(wanted):
        return component.none
    return np.stack([rows[int(np.argmin(steps(component, rows, row)))] for row in wanted])


def _near_by_trial(component: Component, row: Codes) -> Codes:
    """Return legal variants of ``row``: all with one change, and random variants with 2 to 4."""
    rng = np.random.default_rng(zlib.crc32(row.tobytes()))
    lows = [-1 if name in component.conditions else 0 for name in component.names]
    highs = [len(parameter.values) for parameter in component.parameters]
    found, sure = (
        component.none,
        np.concatenate([_singles(row, lows, highs), _swap_pairs(component, row)]),
    )
    for most in (2, 3, 4):
        drawn = rng.integers(lows, highs, size=(_TRIES * most, len(row))).astype(np.int32)
        turn = rng.random(drawn.shape).argsort(axis=1)
        tries = np.where(turn < rng.integers(1, most + 1, size=(len(drawn), 1)), drawn, row)
        tries = np.concatenate([tries, sure])
        tries = np.unique(tries[(tries != row).any(axis=1)], axis=0)
        found = tries[component.legal(tries)]
        if len(found):
            break
    return found


def _singles(row: Codes, lows: Sequence[int], highs: Sequence[int]) -> Codes:
    """Return at most ``_MOST_SINGLES`` copies of ``row``, each with one changed value."""
    changes = [
        (place, code)
        for place, (low, high) in enumerate(zip(lows, highs, strict=True))
        for code in range(low, high)
        if code != row[place]
    ][:_MOST_SINGLES]
    tries = np.repeat(row[None, :], len(changes), axis=0)
    for turn, (place, code) in enumerate(changes):
        tries[turn, place] = code
    return tries


def _swap_pairs(component: Component, row: Codes) -> Codes:
    """Return copies of ``row``, each with the values of two equal-domain parameters swapped."""
    domains = [parameter.values for parameter in component.parameters]
    pairs = [
        (one, other)
        for one, other in combinations(range(len(row)), 2)
        if domains[one] == domains[other] and row[one] != row[other]
    ][:_MOST_SWAPS]
    tries = np.repeat(row[None, :], len(pairs), axis=0)
    for turn, (one, other) in enumerate(pairs):
        tries[turn, [one, other]] = row[[other, one]]
    return tries
