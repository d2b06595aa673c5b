"""Significance tests, effect size and confidence interval of the difference of two samples."""

from __future__ import annotations

from collections.abc import Sequence
from math import comb
from typing import Any

import numpy as np

from dse.core.values import Floats

LEVEL = 0.05
"""Significance level: family-wise probability of a false claim in one comparison."""

RESAMPLES = 4_999

_EXACT_SIZE = 14
"""Pairs up to which a test with ties enumerates all permutations (as for 8 + 8 runs)."""

_SEED = 30_101


def paired_p(
    first: Floats,  # (n,)
    second: Floats,  # (n,)
) -> float:
    """Return the p-value of the Wilcoxon signed-rank test of paired samples.

    Pairs without a difference are left out. With ties, the permutation distribution is used
    instead of the normal approximation.

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
    """Return the p-value of the Mann-Whitney U test of unpaired samples.

    Source:
        Mann, Whitney: On a Test of Whether one of Two Random Variables is Stochastically Larger
        than the Other, 1947; by SciPy.
    """
    every = np.concatenate([first, second])
    if len(np.unique(every)) == 1 or len(every) < 3:
        return 1.0
    if min(len(first), len(second)) == 1:  # SciPy has no permutation test for it
        alone = first[0] if len(first) == 1 else second[0]
        return min(1.0, 2 * float(min((every <= alone).mean(), (every >= alone).mean())))
    from scipy import stats

    ties = len(np.unique(every)) < len(every)
    small = comb(len(every), len(first)) <= 10**6
    method = _build_permutation_method() if ties else "exact" if small else "auto"
    return float(stats.mannwhitneyu(first, second, method=method).pvalue)


def least_p(first: int, second: int, *, paired: bool) -> float:
    """Return the smallest p-value that a test of samples of these sizes can yield."""
    ways = 2**first if paired else comb(first + second, first)
    return min(1.0, 2.0 / ways)


def holm(chances: Sequence[float]) -> list[float]:
    """Return the p-values with Holm's correction for multiple tests.

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
    """Return the probability (A12) that a value of the first group is larger; ties count half.

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
    """Return the 95 % confidence interval of the difference of medians, by percentile bootstrap.

    ``None`` if a group has fewer than two values. Bias is not corrected: that would need the
    jackknife, which is inconsistent for medians.

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


def _build_permutation_method() -> Any:  # a SciPy object without public type
    from scipy import stats

    return stats.PermutationMethod(n_resamples=2**_EXACT_SIZE, rng=np.random.default_rng(_SEED))


def quartiles(
    values: Floats,  # (n, ...)
) -> Floats:
    """Return the lower quartile, median and upper quartile along the first axis, (3, ...).

    Values are interpolated linearly, as by ``numpy.quantile``; between a finite value and infinity
    the result is infinite.
    """
    ordered = np.sort(values, axis=0)
    rows = []
    for share in (0.25, 0.5, 0.75):
        place = share * (len(ordered) - 1)
        low, rest = int(place), place % 1
        below, above = ordered[low], ordered[min(low + 1, len(ordered) - 1)]
        finite = np.isfinite(above)
        between = (1 - rest) * below + rest * np.where(finite, above, 0.0)
        rows.append(np.where(finite | (rest == 0), between, above))
    return np.asarray(np.stack(rows))
