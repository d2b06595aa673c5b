"""Significance and size of the difference between two groups of numbers."""

from __future__ import annotations

from collections.abc import Sequence
from math import comb
from typing import Any

import numpy as np

from dse.core.values import Floats

LEVEL = 0.05
"""The chance that is taken of a false claim among all that one comparison makes."""

RESAMPLES = 4_999
_EXACT_SIZE = 14
"""Up to so many pairs, or 8 + 8 runs, a test with ties goes through every rearrangement."""

_SEED = 30_101


def paired_p(
    first: Floats,  # (n,)
    second: Floats,  # (n,)
) -> float:
    """The chance of such differences between equals, where the numbers go in pairs.

    Pairs without a difference tell nothing and are left out; with ties the distribution is that
    of the rearrangements, not the normal one.

    Source:
        Wilcoxon: Individual Comparisons by Ranking Methods, 1945, signed ranks; by SciPy.
    """
    from scipy import stats

    steps = first - second
    steps = steps[steps != 0]
    if not len(steps):
        return 1.0
    ties = len(np.unique(np.abs(steps))) < len(steps)
    return float(
        stats.wilcoxon(steps, method=_build_permutation_method() if ties else "auto").pvalue
    )


def unpaired_p(
    first: Floats,  # (n,)
    second: Floats,  # (k,)
) -> float:
    """The chance of such a difference between equals, where nothing goes in pairs.

    Source:
        Mann, Whitney: On a Test of Whether one of Two Random Variables is Stochastically Larger
        than the Other, 1947; by SciPy.
    """
    every = np.concatenate([first, second])
    if len(np.unique(every)) == 1 or len(every) < 3:
        return 1.0
    if min(len(first), len(second)) == 1:  # which SciPy does not rearrange
        alone = first[0] if len(first) == 1 else second[0]
        return min(1.0, 2 * float(min((every <= alone).mean(), (every >= alone).mean())))
    from scipy import stats

    ties = len(np.unique(every)) < len(every)
    small = comb(len(every), len(first)) <= 10**6
    method = _build_permutation_method() if ties else "exact" if small else "auto"
    return float(stats.mannwhitneyu(first, second, method=method).pvalue)


def least_p(first: int, second: int, *, paired: bool) -> float:
    """The smallest chance that a test of so many numbers can come to."""
    ways = 2**first if paired else comb(first + second, first)
    return min(1.0, 2.0 / ways)


def holm(chances: Sequence[float]) -> list[float]:
    """Each chance corrected for all the others that are looked at beside it.

    Source:
        Holm: A Simple Sequentially Rejective Multiple Test Procedure, 1979.
    """
    order = np.argsort(chances, kind="stable")
    corrected = np.ones(len(chances))
    steps = np.array(chances)[order] * np.arange(len(chances), 0, -1)
    corrected[order] = np.minimum(np.maximum.accumulate(steps), 1.0) if len(steps) else steps
    return list(map(float, corrected))


def a12(
    first: Floats,  # (n,)
    second: Floats,  # (k,)
) -> float:
    """The chance that a number of the first group is larger; ties count half.

    Source:
        Vargha, Delaney: A Critique and Improvement of the CL Common Language Effect Size
        Statistics of McGraw and Wong, 2000, eq. 1.
    """
    steps = first[:, None] - second[None, :]
    return float((steps > 0).mean() + 0.5 * (steps == 0).mean())


def interval(
    first: Floats,  # (n,)
    second: Floats,  # (k,)
    *,
    paired: bool,
) -> tuple[float, float] | None:
    """Return the 95 % interval of the difference of medians, by bootstrap percentiles.

    ``None`` where a group has a single number. Bias is not corrected for: of a median the
    jackknife, which that needs, tells nothing.

    Source:
        Efron, Tibshirani: An Introduction to the Bootstrap, 1993, ch. 13; by SciPy.
    """
    if min(len(first), len(second)) < 2:
        return None
    from scipy import stats

    found = stats.bootstrap(
        (first, second),
        _median_difference,
        n_resamples=RESAMPLES,
        paired=paired,
        vectorized=True,
        method="percentile",
        rng=np.random.default_rng(_SEED),
    ).confidence_interval
    return float(found.low), float(found.high)


def _median_difference(first: Floats, second: Floats, axis: int = -1) -> Floats:
    return np.asarray(np.median(first, axis=axis) - np.median(second, axis=axis))


def _build_permutation_method() -> Any:  # SciPy's way of going through rearrangements
    from scipy import stats

    return stats.PermutationMethod(n_resamples=2**_EXACT_SIZE, rng=np.random.default_rng(_SEED))
