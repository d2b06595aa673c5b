"""Convergence curves: the indicators of each group of studies over the budget spent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dse.analysis.comparison import ComparisonResult
from dse.analysis.references import INDICATORS, Indicator
from dse.analysis.runs import Currency, FrontHistory
from dse.analysis.significance import quartiles
from dse.core.values import Floats

GRID_STEPS = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Curves:
    """Values of each indicator at the budgets ``grid``, per study, with the studies by group.

    A study that ended earlier keeps its last value. Before a study's first feasible trial, its
    distance indicators are infinite.
    """

    currency: Currency
    grid: Floats  # (g,)
    values: tuple[Mapping[Indicator, Floats], ...]  # for each group (studies, g)

    def quartiles(self, group: int, indicator: Indicator) -> Floats:
        """Return an indicator's quartiles over a group's studies at each of g budgets, (3, g)."""
        return quartiles(self.values[group][indicator])


def curves(comparison: ComparisonResult) -> list[Curves]:
    """Return the convergence curves of a comparison: :class:`Curves` per currency of the budget."""
    grids = {currency: _grid(comparison, currency) for currency in comparison.currencies}
    ends = np.cumsum([len(grid) for grid in grids.values()])[:-1]
    found = [
        [_values(comparison, course, grids) for course in group] for group in comparison.courses
    ]
    return [
        Curves(
            currency=currency,
            grid=grid,
            values=tuple(
                {
                    name: np.stack([np.split(one[name], ends)[place] for one in group])
                    for name in INDICATORS
                }
                for group in found
            ),
        )
        for place, (currency, grid) in enumerate(grids.items())
    ]


def _values(
    comparison: ComparisonResult, course: FrontHistory, grids: Mapping[Currency, Floats]
) -> dict[Indicator, Floats]:
    """Return one study's indicators at the budgets of all currencies, one after another."""
    arrived = [course.arrived(currency, grid) for currency, grid in grids.items()]
    return comparison.yardstick.values(course, np.concatenate(arrived))


def _grid(comparison: ComparisonResult, currency: Currency) -> Floats:
    results = [result for group in comparison.groups for result in group.results]
    grid = np.linspace(0.0, max(one.totals[currency] for one in results), GRID_STEPS + 1)
    whole: Sequence[Currency] = ("measurements", "trials")
    return np.unique(grid.round()) if currency in whole else np.unique(grid)
