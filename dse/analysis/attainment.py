"""Attainment surfaces: bounds of the points that at least k runs of a group attain."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dse.core.values import Floats

MOST_EDGES = 160
"""Largest number of grid lines along an axis; of more coordinates, evenly spaced ones are used."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Surface:
    """Attainment surface: boundary of the region that at least ``runs`` runs of a group attain.

    The boundary is given by its corner points. A run attains a point of the objective space if a
    point of the run's front dominates or equals it.
    """

    runs: int
    losses: Floats  # (k, m), minimised


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """Difference of two groups' empirical attainment functions, on a grid of cells.

    ``shares`` holds, for each cell, the fraction of the first group's runs whose front dominates
    the entire cell minus that fraction in the second group. ``across`` and ``up`` are the edges of
    the cells in the first and the second objective, as losses (minimised).
    """

    across: Floats  # (a + 1,), rising
    up: Floats  # (b + 1,), rising
    shares: Floats  # (b, a)


def surfaces(
    fronts: Sequence[Floats],  # each (f, m), minimised
) -> list[Surface]:
    """Return the best, median and worst attainment surfaces of a group of runs.

    The surfaces bound the points that at least one run, half of the runs, and all runs attain.
    There must be two or three objectives.

    Source:
        Grunert da Fonseca, Fonseca, Hall: Inferential Performance Assessment of Stochastic
        Optimisers and the Attainment Function, EMO 2001; Fonseca, Guerreiro, Lopez-Ibanez,
        Paquete: On the Computation of the Empirical Attainment Function, 2011; by moocore.
    """
    import moocore

    held = [front for front in fronts if len(front)]
    if not held:
        return []
    wanted = sorted({1, (len(fronts) + 1) // 2, len(fronts)} & set(range(1, len(held) + 1)))
    sets = np.repeat(np.arange(len(held)), [len(front) for front in held])
    shares = [100.0 * count / len(held) for count in wanted]
    rows = moocore.eaf(np.vstack(held), sets=sets, percentiles=shares)
    return [
        Surface(runs=count, losses=rows[np.isclose(rows[:, -1], share)][:, :-1])
        for count, share in zip(wanted, shares, strict=True)
    ]


def difference(
    first: Sequence[Floats],  # each (f, 2), minimised
    second: Sequence[Floats],  # each (f, 2), minimised
    point: Floats,  # (2,), reference point: the upper bound of the grid
) -> Difference | None:
    """Return the difference of two groups' empirical attainment functions, first minus second.

    The difference is evaluated on a grid over the two objectives that ends at the reference point.
    ``None`` if no front has a point that is better than the reference point in both objectives.

    Source:
        Lopez-Ibanez, Paquete, Stuetzle: Exploratory Analysis of Stochastic Local Search Algorithms
        in Biobjective Optimization, 2010.
    """
    inside = [front[(front < point).all(axis=1)] for front in (*first, *second)]
    every = np.vstack(inside)
    if not len(every):
        return None
    across, up = (_edges(every[:, axis], float(point[axis])) for axis in (0, 1))
    return Difference(
        across=across,
        up=up,
        shares=_shares(first, across[:-1], up[:-1]) - _shares(second, across[:-1], up[:-1]),
    )


def slices(
    fronts: Sequence[Floats],  # each (f, 3), minimised
    bound: float,
) -> list[Floats]:
    """Return, per front, the first two losses of the points whose third loss is within a bound."""
    return [front[front[:, 2] <= bound][:, :2] for front in fronts]


def _shares(fronts: Sequence[Floats], across: Floats, up: Floats) -> Floats:
    """Return the fraction of the fronts that attain each point of a grid, (b, a).

    The grid has a values (``across``) in the first objective and b values (``up``) in the second.
    """
    counts = np.zeros((len(up), len(across)))
    for front in fronts:
        counts += _least(front, across)[None, :] <= up[:, None]
    return counts / len(fronts)


def _least(front: Floats, across: Floats) -> Floats:
    """Return the least second loss among points whose first loss is at most each ``across``, (a,).

    It is infinite where the front has no such point.
    """
    ordered = front[np.argsort(front[:, 0], kind="stable")]
    least = np.append(np.inf, np.minimum.accumulate(ordered[:, 1]))
    return np.asarray(least[np.searchsorted(ordered[:, 0], across, side="right")])


def _edges(values: Floats, end: float) -> Floats:
    different = np.unique(values)
    if len(different) > MOST_EDGES:
        places = np.linspace(0, len(different) - 1, MOST_EDGES).round().astype(np.int64)
        different = different[places]
    return np.append(different, end)
