"""Difficulty of a class of problems: the distribution of the success probability of an answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from dse.core.values import Floats
from dse.errors import SpecError
from dse_evaluators.reasoning.pass_counts import PassCurve

NODES = 64
"""Nodes of the quadrature; coverage is then exact to 1e-8 for up to 1,024 answers."""

DISTRIBUTIONS = ("auto", "beta", "mixture")
"""A beta distribution, or one and a share of problems that no answer solves; auto: by the k."""

MOST_SUCCESS = 1.0 - 1e-16
"""Largest success probability of a node, so that logarithms are finite."""

_LEAST_LOG, _MOST_LOG = -14.0, 14.0
_FEWEST, _MOST = 3, 4
"""Numbers of k that a mixture is fitted to: as many as it has parameters, and one more."""


@dataclass(frozen=True, slots=True)
class Difficulty:
    """Difficulty distribution of problems: success probabilities and weights, (j,) each."""

    success: Floats
    weight: Floats

    def mean(self, values: Floats) -> Floats:
        """Return the mean over the problems of values (n, j), (n,)."""
        return values @ self.weight


@dataclass(frozen=True, slots=True, kw_only=True)
class DifficultyFit:
    """Beta distribution of the problems' success probability, and its error on held-out k.

    ``unsolved`` is the share of problems that no answer solves. ``errors`` are predicted minus
    stated shares of solved problems, by each k that was not fitted.
    """

    right: float
    wrong: float
    unsolved: float
    fitted: tuple[int, ...]
    errors: Mapping[int, float]

    def solve(self, answers: float) -> float:
        """Return the share of problems that at least one of k answers solves (pass@k)."""
        return (1.0 - self.unsolved) * compute_coverage(answers, self.right, self.wrong)

    @property
    def difficulty(self) -> Difficulty:
        """Fitted distribution of the success probability, as quadrature nodes."""
        return _place_nodes(self.right, self.wrong, self.unsolved)


def compute_coverage(answers: float, right: float, wrong: float) -> float:
    """Return the mean of 1 - (1 - p)^k over a beta distribution: 1 - B(a, b + k) / B(a, b)."""
    from scipy.special import betaln  # SciPy is slow to import, and only this needs it

    return float(-np.expm1(betaln(right, wrong + answers) - betaln(right, wrong)))


def fit_difficulty(curve: PassCurve, distribution: str) -> DifficultyFit:
    """Fit the distribution of difficulty to some k of a curve of pass@k; hold the others out.

    A ``beta`` has two parameters, fitted to pass@1 and to pass@k at the largest k below 1. A
    ``mixture`` has a third, the share that no answer solves. It has the curve's pass@1 and is
    nearest, by least squares, at three other k that are evenly spread over those of the curve, or
    at two if there are fewer than five. ``auto`` is the mixture if a k remains to be held out, and
    else the beta.

    Raises:
        SpecError: the curve has too few points, or no such distribution passes through them.

    Source:
        Brown et al.: Large Language Monkeys, 2024, observe that the success probabilities of
        problems are spread; the beta distribution is a choice of this model.
    """
    counts = [count for count, share in curve.solved.items() if share < 1.0]
    if distribution == "auto":
        distribution = "mixture" if len(counts) > _FEWEST else "beta"
    needed = 2 if distribution == "beta" else _FEWEST
    if len(counts) < needed:
        problem = f"{curve.name} has {len(counts)} k with pass@k below 1"
        hint = f"a {distribution} is fitted to {needed}: add rows with other k"
        raise SpecError(problem, where=curve.where, hint=hint)
    fitted: tuple[int, ...] = (1, counts[-1])
    right, wrong, unsolved = *_fit_beta(curve, counts[-1]), 0.0
    if distribution == "mixture":
        fitted = _choose_counts(counts)
        right, wrong, unsolved = _fit_mixture(curve, fitted, right, wrong)
    made = DifficultyFit(right=right, wrong=wrong, unsolved=unsolved, fitted=fitted, errors={})
    errors = {
        count: made.solve(count) - share
        for count, share in curve.solved.items()
        if count not in fitted
    }
    return DifficultyFit(right=right, wrong=wrong, unsolved=unsolved, fitted=fitted, errors=errors)


def _choose_counts(counts: Sequence[int]) -> tuple[int, ...]:
    """Return the k that a mixture is fitted to, of those with pass@k below 1."""
    if len(counts) <= _MOST:
        return counts[0], counts[len(counts) // 2], counts[-1]
    return tuple(counts[round(place)] for place in np.linspace(0, len(counts) - 1, _MOST))


def _fit_beta(curve: PassCurve, count: int) -> tuple[float, float]:
    """Return the beta distribution with pass@1 and pass@k of a curve."""
    from scipy.optimize import brentq

    single, share = curve.solved[1], curve.solved[count]

    def miss(log_sum: float) -> float:
        total = np.exp(log_sum)
        return compute_coverage(count, single * total, (1.0 - single) * total) - share

    if miss(_MOST_LOG) < 0:  # by rounding only: a curve above that of equal problems is refused
        total = float(np.exp(_MOST_LOG))
        return single * total, (1.0 - single) * total
    if miss(_LEAST_LOG) > 0:
        problem = f"pass@{count} of {curve.name} is {share:g}, hardly more than pass@1"
        hint = "no spread of difficulty fits: check the rows of this class"
        raise SpecError(problem, where=curve.where, hint=hint)
    total = float(np.exp(brentq(miss, _LEAST_LOG, _MOST_LOG, xtol=1e-12)))
    return single * total, (1.0 - single) * total


def _fit_mixture(
    curve: PassCurve, counts: Sequence[int], right: float, wrong: float
) -> tuple[float, float, float]:
    """Return the mixture with pass@1 of a curve that is nearest to its shares at other k."""
    from scipy.optimize import least_squares

    single, later = curve.solved[1], counts[1:]
    shares = np.array([curve.solved[count] for count in later])
    most = 1.0 - shares[-1]

    def read(point: Floats) -> tuple[float, float, float]:
        total, unsolved = np.exp(point[0]), most * point[1]
        mean = single / (1.0 - unsolved)
        return float(mean * total), float((1.0 - mean) * total), float(unsolved)

    def miss(point: Floats) -> Floats:
        a, b, unsolved = read(point)
        found = [(1.0 - unsolved) * compute_coverage(count, a, b) for count in later]
        return np.array(found) - shares

    bounds = ([_LEAST_LOG, 0.0], [_MOST_LOG, 1.0])
    start = min(max(float(np.log(right + wrong)), _LEAST_LOG), _MOST_LOG)
    exact = {"xtol": 1e-15, "ftol": 1e-15, "gtol": 1e-15}
    # The sum has several minima: with hardly any unsolved problems, and with many.
    found = [
        least_squares(miss, [start, part], bounds=bounds, **exact) for part in (0.01, 0.5, 0.95)
    ]
    return read(min(found, key=lambda one: one.cost).x)


def _place_nodes(right: float, wrong: float, unsolved: float) -> Difficulty:
    """Return the nodes of a beta distribution, and a node at 0 for the unsolved problems."""
    solvable = place_beta(right, wrong, NODES)
    if not unsolved:
        return solvable
    weight = solvable.weight * (1.0 - unsolved)
    return Difficulty(np.append(solvable.success, 0.0), np.append(weight, unsolved))


@cache
def place_beta(right: float, wrong: float, nodes: int) -> Difficulty:
    """Return the nodes of Gaussian quadrature over a beta distribution.

    Source:
        Golub, Welsch: Calculation of Gauss Quadrature Rules, 1969, with the recurrence of the
        Jacobi polynomials.
    """
    alpha, beta = wrong - 1.0, right - 1.0
    k = np.arange(1, nodes, dtype=np.float64)
    twice = 2.0 * k + alpha + beta
    first = (beta - alpha) / (alpha + beta + 2.0)
    middle = np.append(first, (beta**2 - alpha**2) / (twice * (twice + 2.0)))
    common = 4.0 * k * (k + alpha) * (k + beta) / twice**2
    ratio = np.ones_like(k)  # at k = 1 numerator and denominator are equal, and may be 0
    ratio[1:] = (k[1:] + alpha + beta) / (twice[1:] - 1.0)
    side = np.sqrt(common * ratio / (twice + 1.0))
    places, vectors = np.linalg.eigh(np.diag(middle) + np.diag(side, 1) + np.diag(side, -1))
    success = np.clip((1.0 + places) / 2.0, 0.0, MOST_SUCCESS)
    return Difficulty(success, vectors[0] ** 2)
