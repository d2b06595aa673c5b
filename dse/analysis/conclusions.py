"""Pairwise significance tests between groups of runs, with a family-wise error correction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from dse.analysis.references import Indicator, sign_of
from dse.analysis.run_groups import RunGroup
from dse.analysis.significance import (
    LEVEL,
    a12,
    holm,
    interval,
    least_p,
    paired_p,
    quartiles,
    unpaired_p,
)
from dse.core.values import Floats

Values = Mapping[Indicator, Floats]
"""Values of each indicator, (runs,); infinite where a run has no value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Conclusion:
    """Result of a significance test of one indicator between two groups of runs.

    ``difference`` is the first group's median minus the second's, ``None`` if a median is not
    finite; ``interval`` is its 95 % confidence interval. ``superiority`` is the probability that a
    run of the first group is better than one of the second (A12). ``chance`` is the p-value,
    ``corrected`` the p-value after Holm's correction over all tests of a comparison, and ``least``
    the smallest p-value that is possible with this number of runs.
    """

    indicator: Indicator
    first: str
    second: str
    runs: tuple[int, int]
    paired: bool
    difference: float | None
    interval: tuple[float, float] | None
    superiority: float
    chance: float
    corrected: float
    least: float

    @property
    def made(self) -> bool:
        """Whether the difference is significant: the corrected p-value is at most 0.05."""
        return self.corrected <= LEVEL

    @property
    def better(self) -> str | None:
        """Name of the significantly better group; ``None`` if the difference is not significant."""
        if not self.made:
            return None
        return self.first if self.superiority > 0.5 else self.second


def claims(
    groups: Sequence[RunGroup], values: Sequence[Values], indicators: Sequence[Indicator]
) -> tuple[Conclusion, ...]:
    """Test every pair of groups by every indicator; correct the p-values for multiple testing.

    Groups with the same seeds are tested in pairs of runs (Wilcoxon signed-rank test), other groups
    unpaired (Mann-Whitney U test). Holm's correction covers all tests together.

    Args:
        groups: the groups of runs.
        values: for each group, the values of each indicator, one per run in the group's order.
        indicators: the indicators to test; fewer tests need less correction.
    """
    found = [
        _claim(indicator, (groups[a], groups[b]), (values[a][indicator], values[b][indicator]))
        for a, b in combinations(range(len(groups)), 2)
        for indicator in indicators
    ]
    corrected = holm([claim.chance for claim in found])
    return tuple(
        replace(claim, corrected=chance) for claim, chance in zip(found, corrected, strict=True)
    )


def _claim(
    indicator: Indicator, pair: tuple[RunGroup, RunGroup], values: tuple[Floats, Floats]
) -> Conclusion:
    paired = _share_seeds(*pair)
    first, second = _in_order(pair[0], values[0]), _in_order(pair[1], values[1])
    known = bool(np.isfinite(first).all() and np.isfinite(second).all())
    middles = [float(quartiles(each)[1]) for each in (first, second)]
    ranked = _finite(first, second)
    chance = (paired_p if paired else unpaired_p)(*ranked)
    return Conclusion(
        indicator=indicator,
        first=pair[0].name,
        second=pair[1].name,
        runs=(len(first), len(second)),
        paired=paired,
        difference=middles[0] - middles[1] if np.isfinite(middles).all() else None,
        interval=interval(first, second, paired=paired) if known else None,
        superiority=a12(*(-sign_of(indicator) * each for each in ranked)),
        chance=chance,
        corrected=chance,
        least=least_p(len(first), len(second), paired=paired),
    )


def _share_seeds(first: RunGroup, second: RunGroup) -> bool:
    """Return whether both groups have the same seeds, more than one, and each of them only once."""
    seeds = set(first.seeds)
    each_once = len(first.seeds) == len(second.seeds) == len(seeds)
    return each_once and len(seeds) > 1 and seeds == set(second.seeds)


def _in_order(group: RunGroup, values: Floats) -> Floats:
    """Return the indicator values of a group's runs, sorted by the runs' seeds."""
    return np.asarray(values[np.argsort(group.seeds, kind="stable")])


def _finite(first: Floats, second: Floats) -> tuple[Floats, Floats]:
    """Replace infinite values by a finite value that is worse than all others, for rank tests."""
    every = np.concatenate([first, second])
    known = every[np.isfinite(every)]
    worst = float(known.max() + np.ptp(known) + 1.0) if len(known) else 1.0
    return tuple(np.where(np.isfinite(v), v, worst) for v in (first, second))  # type: ignore[return-value] # of two
