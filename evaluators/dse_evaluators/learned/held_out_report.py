"""Held-out error of a learned metric, by an outer cross-validation of the complete fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dse.core.values import Floats, Ints
from dse_evaluators.learned.metric_model import fit_metric, folds_of

ONE_SPLIT = 2_000
"""Runs above which one fold, of a fifth of them, is held out instead of each in turn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldOutReport:
    """Errors of a learned metric on runs that neither its choice nor its fit used.

    ``mape`` and ``largest`` are relative errors, ``coverage`` the share of runs inside the band.
    """

    metric: str
    model: str
    runs: int
    held_out: int
    mape: float
    largest: float
    spearman: float
    coverage: float
    grouped_by: str = ""

    @property
    def sentence(self) -> str:
        """Errors of the learned metric as one sentence."""
        how = f", by whole groups of {self.grouped_by}" if self.grouped_by else ""
        return (
            f"{self.metric}: {self.model}, fitted to {self.runs} runs; on {self.held_out} held-out "
            f"runs{how}: mean error {self.mape:.1%}, largest {self.largest:.0%}, rank correlation "
            f"{self.spearman:.3f}, the 90 % band covers {self.coverage:.0%}"
        )


def report_held_out(
    metric: str,
    features: Floats,  # (n, f)
    target: Floats,  # (n,)
    groups: Ints,  # (n,)
    directions: Sequence[int],
    *,
    model: str,
    grouped_by: str,
) -> HeldOutReport:
    """Return the held-out errors of a learned metric, with the choice of the model included.

    Args:
        metric: name of the metric.
        features: features of n runs.
        target: the metric of each run, in its unit.
        groups: number of the group of each run; a group is held out as a whole.
        directions: the monotone direction of each feature.
        model: name of the candidate that the fit to all runs has chosen.
        grouped_by: the column of the groups; empty without one.
    """
    found = np.zeros((3, len(target)))
    judged = np.zeros(len(target), dtype=bool)
    for out in folds_of(groups):
        fitted = fit_metric(features[~out], target[~out], groups[~out], directions)
        found[:, out] = fitted.predict(features[out])
        judged |= out
        if len(target) > ONE_SPLIT:
            break
    middle, low, high = found[:, judged]
    return judge(
        metric,
        target[judged],
        middle,
        (low, high),
        runs=len(target),
        model=model,
        grouped_by=grouped_by,
    )


def judge(
    metric: str,
    true: Floats,  # (n,)
    predicted: Floats,  # (n,)
    band: tuple[Floats, Floats],  # two of (n,)
    *,
    runs: int,
    model: str,
    grouped_by: str = "",
) -> HeldOutReport:
    """Compare predictions of a metric with its true values for n designs.

    Args:
        metric: name of the metric.
        true: the metric of n designs.
        predicted: the predicted metric of each design.
        band: the lower and the upper end of each design's prediction band.
        runs: number of runs that the fit used.
        model: name of the candidate.
        grouped_by: the column of the groups; empty without one.
    """
    errors = relative_errors(true, predicted)
    return HeldOutReport(
        metric=metric,
        model=model,
        runs=runs,
        held_out=len(true),
        mape=float(errors.mean()),
        largest=float(errors.max()),
        spearman=rank_correlation(true, predicted),
        coverage=float(np.mean((band[0] <= true) & (true <= band[1]))),
        grouped_by=grouped_by,
    )


def relative_errors(
    true: Floats,  # (n,)
    predicted: Floats,  # (n,)
) -> Floats:
    """Return relative errors, (n,); where the true value is 0, relative to the mean magnitude."""
    scale = np.where(true == 0, np.abs(true).mean() or 1.0, np.abs(true))
    return np.abs(predicted - true) / scale


def rank_correlation(left: Floats, right: Floats) -> float:
    """Return Spearman's rank correlation; 0 if either is constant."""
    from scipy.stats import rankdata

    if np.ptp(left) == 0 or np.ptp(right) == 0:
        return 0.0
    return float(np.corrcoef(rankdata(left), rankdata(right))[0, 1])
