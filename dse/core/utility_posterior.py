"""Posterior over a user's utility of the objectives, learnt from comparisons of two designs.

The posterior is a weighted sample of utility functions (particles). It depends on the
designs and the answers alone: the sample has a fixed seed, so that the same answers lead to the
same questions.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np

from dse.core.values import Floats, Ints

Response = Literal["first", "second", "equal"]
"""Answer to the question which of two designs is preferred."""

NEAR = 0.01
"""Loss of utility, as a share of the range over the designs, that counts as no loss."""

PARTICLES = 8_192
"""Number of sampled utility functions."""

MOST_CANDIDATES = 256
"""Most designs that are compared: the designs that are best under most utility functions."""

_PAIRED = 24
"""Number of designs, the likeliest to be the best, among which the next pair is searched."""

_USERS = 512
"""Number of particles for which the value of a question is computed."""

_LEARNT = 32
"""Number of particles that represent the posterior for designs that were not compared."""

_SEED = 20_220_303
_BLOCK = 256
_STRICT, _CURVED = 0.35, 0.3
"""Probabilities that a user has thresholds, and that utility is not linear in the objectives."""

_SCALE, _TIE = 0.02, 0.02
"""Differences of utility at which answers become doubtful, and below which designs seem equal."""

_ERROR = 0.08
_AT_RANDOM: Mapping[Response, float] = {"first": 0.45, "second": 0.45, "equal": 0.1}
"""Probability of an answer without regard to the designs, and of each answer in that case."""


@dataclass(frozen=True, kw_only=True)
class UtilityPosterior:
    """Posterior over a user's utility of some designs, given comparisons of pairs of them.

    ``candidates`` are the rows of the designs that can be compared. ``utilities`` holds the utility
    of each candidate under each sampled utility function: 1 for the best acceptable design, 0 for
    the worst acceptable one, and negative for designs above a threshold. ``weights`` are the
    posterior probabilities of the sampled functions.

    Source:
        Lin, Astudillo, Frazier, Bakshy: Preference Exploration for Efficient Bayesian Optimization
        with Multiple Outcomes, AISTATS 2022, eq. 5 (expected utility of the best option, EUBO);
        Rao, Kupper: Ties in Paired-Comparison Experiments, JASA 62, 1967 (answers with ties).
    """

    candidates: Ints  # (c,)
    utilities: Floats  # (p, c)
    weights: Floats  # (p,), sum 1

    @staticmethod
    def of(
        losses: Floats,  # (n, m), minimised
        keep: Sequence[int] = (),
    ) -> UtilityPosterior:
        """Return the prior over a user's utility of designs, before any comparison is answered.

        Args:
            losses: the objectives of the designs; each is scaled by its range.
            keep: rows that are candidates in any case, such as the designs of earlier answers.
        """
        halves = 0.5 * losses  # halved, because the range of the largest floats overflows
        span = np.ptp(halves, axis=0)
        shares = (halves - halves.min(axis=0)) / np.where(span > 0, span, 1.0)
        users = _UtilitySample.draw(losses.shape[1], PARTICLES)
        candidates = _choose_candidates(shares, users, keep)
        return UtilityPosterior(
            candidates=candidates,
            utilities=users.utilities(shares[candidates]),
            weights=np.full(PARTICLES, 1.0 / PARTICLES),
        )

    def answered(self, first: int, second: int, response: Response) -> UtilityPosterior:
        """Return the posterior over a user's utility after one more comparison of two designs.

        Args:
            first: row of the first design, a candidate.
            second: row of the second design, a candidate.
            response: which of the two designs is preferred, or that they are equally good.
        """
        a, b = (int(np.flatnonzero(self.candidates == row)[0]) for row in (first, second))
        gap = self.utilities[:, a] - self.utilities[:, b]
        weights = self.weights * likelihood(gap, response)
        return replace(self, weights=weights / weights.sum())

    @property
    def favourite(self) -> int:
        """Row of the design with the highest expected utility to the user."""
        return int(self.candidates[self._best])

    @property
    def confidence(self) -> float:
        """Probability that the user's favourite is within :data:`NEAR` of the highest utility."""
        return float(self.weights[self.utilities[:, self._best] >= 1 - NEAR].sum())

    def question(self, asked: Collection[tuple[int, int]] = ()) -> tuple[int, int] | None:
        """Return the rows of the two designs whose comparison would tell most about the favourite.

        The value is the expected utility of the better one of the two designs (EUBO).

        Args:
            asked: pairs of rows that were compared before and are excluded; the order of a pair
                does not matter.

        Returns:
            The pair; ``None`` if all pairs of promising designs were asked.
        """
        done = {frozenset(pair) for pair in asked}
        places = self._promising()
        pairs = np.array(
            [
                (a, b)
                for at, a in enumerate(places)
                for b in places[at + 1 :]
                if frozenset((int(self.candidates[a]), int(self.candidates[b]))) not in done
            ]
        )
        if not len(pairs):
            return None
        users = self.utilities[self._resample()].T  # (c, u)
        values = [np.maximum(users[a], users[b]).mean() for a, b in pairs]
        first, second = self.candidates[pairs[int(np.argmax(values))]]
        return int(first), int(second)

    @cached_property
    def _expected(self) -> Floats:
        """Expected utility of each candidate, (c,)."""
        return np.asarray(self.weights @ self.utilities)

    @property
    def _best(self) -> int:
        return int(np.argmax(self._expected))

    def _promising(self) -> list[int]:
        """Return the positions of the candidates most likely to be best, the likeliest first."""
        best = np.argmax(self.utilities, axis=1)
        chances = np.bincount(best, weights=self.weights, minlength=len(self.candidates))
        ranked = np.lexsort((-self._expected, -np.round(chances, 6)))
        return ranked[:_PAIRED].tolist()

    def _resample(self) -> Ints:
        """Return the indices of particles drawn by systematic resampling, (u,)."""
        return _resample(self.weights, _USERS)


@dataclass(frozen=True, kw_only=True)
class LearntUtility:
    """Sample of the posterior over a user's utility function, for designs that were not compared.

    Each sampled function is scaled so that the best known design has utility 1 and the worst one 0.
    Build it with :meth:`of`.
    """

    users: _UtilitySample
    low: Floats  # (m,)
    span: Floats  # (m,), above 0
    best: Floats  # (u,), least loss among the known designs that no threshold excludes
    width: Floats  # (u,), the range of their losses, above 0
    over: Floats  # (u,), by how much known designs exceed thresholds at least

    @staticmethod
    def of(
        losses: Floats,  # (n, m), minimised
        answers: Sequence[tuple[int, int, Response]],
        ideal: Floats,  # (m,)
    ) -> LearntUtility:
        """Return the posterior over a user's utility, given answers that compare known designs.

        Args:
            losses: the objectives of the known designs.
            answers: rows of the first and the second design that were compared, and the answer.
            ideal: least losses that further designs may have.
        """
        low = np.minimum(losses.min(axis=0), ideal)
        span = losses.max(axis=0) - low
        span = np.where(span > 0, span, 1.0)
        shares = (losses - low) / span
        users = _UtilitySample.draw(losses.shape[1], PARTICLES)
        compared = np.unique([row for a, b, _ in answers for row in (a, b)]).astype(int)
        some = np.unique(np.append(spread_rows(len(shares), MOST_CANDIDATES), compared))
        utilities = users.utilities(shares[some])
        weights = np.full(PARTICLES, 1.0 / PARTICLES)
        for first, second, response in answers:
            a, b = np.searchsorted(some, [first, second])
            weights = weights * likelihood(utilities[:, a] - utilities[:, b], response)
        users = users.take(_resample(weights / weights.sum(), _LEARNT))
        loss, over = users.judge(slice(None), shares)
        least = over.min(axis=1)
        accepted = over <= least[:, None]
        best = np.where(accepted, loss, np.inf).min(axis=1)
        width = np.where(accepted, loss, -np.inf).max(axis=1) - best
        return LearntUtility(
            users=users,
            low=low,
            span=span,
            best=best,
            width=np.where(width > 0, width, 1.0),
            over=least,
        )

    def gains(
        self,
        losses: Floats,  # (n, m), minimised
    ) -> Floats:
        """Return how far each design exceeds the best known design in utility, at least 0, (u, n).

        Losses below the ideal point count as equal to it.
        """
        shares = np.maximum((losses - self.low) / self.span, 0.0)
        loss, over = self.users.judge(slice(None), shares)
        fewer = self.over[:, None] - over
        better = np.maximum(self.best[:, None] - loss, 0.0) / self.width[:, None]
        return np.where(fewer >= 0, better + fewer, 0.0)


def spread_rows(count: int, most: int) -> Ints:
    """Return an even sample of at most ``most`` of ``count`` rows."""
    return np.unique(np.linspace(0, count - 1, min(count, most)).round().astype(int))


def _resample(weights: Floats, count: int) -> Ints:
    """Return the indices of particles drawn by systematic resampling, (count,)."""
    steps = (np.arange(count) + 0.5) / count
    places = np.searchsorted(np.cumsum(weights), steps)
    return np.minimum(places, len(weights) - 1)


def likelihood(
    gap: Floats,  # (p,), utility of the first design minus that of the second
    response: Response,
) -> Floats:
    """Return the probability of an answer under each of p utility functions, (p,).

    Args:
        gap: difference of utility, first minus second.
        response: the answer.
    """
    first, second = _logistic((gap - _TIE) / _SCALE), _logistic((-gap - _TIE) / _SCALE)
    known = {"first": first, "second": second, "equal": 1 - first - second}[response]
    return np.asarray((1 - _ERROR) * known + _ERROR * _AT_RANDOM[response])


def _logistic(values: Floats) -> Floats:
    return np.asarray(0.5 * (1 + np.tanh(0.5 * values)))


@dataclass(frozen=True, kw_only=True)
class _UtilitySample:
    """Sample of utility functions over objectives that are scaled to 0 (best) ... 1 (worst).

    A loss is a mixture of the weighted sum and the weighted maximum (augmented Chebyshev) of powers
    of the objectives. A user may have thresholds, above which a design is not acceptable.
    """

    weights: Floats  # (p, m)
    mixture: Floats  # (p,), 0: sum, 1: maximum
    power: Floats  # (p,), above 1: only large losses matter
    thresholds: Floats  # (p, m), infinite where there is none

    @staticmethod
    def draw(objectives: int, count: int) -> _UtilitySample:
        """Draw utility functions from the prior, with a fixed seed."""
        rng = np.random.default_rng([_SEED, objectives])
        kind, curved = rng.random(count), rng.random(count) < _CURVED
        strict = (rng.random(count) < _STRICT)[:, None]
        bounded = strict & (rng.random((count, objectives)) < 0.5)
        return _UtilitySample(
            weights=rng.dirichlet(np.ones(objectives), count),
            mixture=np.where(kind < 0.4, 0.0, np.where(kind < 0.8, 1.0, rng.random(count))),
            power=np.where(curved, 4.0 ** rng.uniform(-1, 1, count), 1.0),
            thresholds=np.where(bounded, rng.random((count, objectives)), np.inf),
        )

    def utilities(
        self,
        shares: Floats,  # (n, m), 0 to 1
    ) -> Floats:
        """Return the utility of each design under each function, (p, n)."""
        parts = [slice(at, at + _BLOCK) for at in range(0, len(self.weights), _BLOCK)]
        return np.vstack([self._utilities_of(part, shares) for part in parts])

    def _utilities_of(self, part: slice, shares: Floats) -> Floats:
        return _scale_utilities(*self.judge(part, shares))

    def judge(
        self,
        part: slice,
        shares: Floats,  # (n, m), at least 0
    ) -> tuple[Floats, Floats]:
        """Return each design's loss under some functions, and its excess over thresholds, (b, n).

        The excess is summed over the objectives.

        Args:
            part: the functions to use.
            shares: the objectives of the designs.
        """
        power = self.power[part]
        powered = np.repeat(shares[None], len(power), axis=0)  # (b, n, m)
        curved = power != 1.0  # the others are most, and powers cost most of the time
        powered[curved] = shares ** power[curved, None, None]
        each = self.weights[part, None, :] * powered
        mixture, total = self.mixture[part, None], each.sum(axis=2)
        loss = (1 - mixture) * total + mixture * each.max(axis=2) + 1e-3 * total
        return loss, np.maximum(shares - self.thresholds[part, None, :], 0.0).sum(axis=2)

    def take(self, rows: Ints) -> _UtilitySample:
        """Return the functions at these indices."""
        return _UtilitySample(
            weights=self.weights[rows],
            mixture=self.mixture[rows],
            power=self.power[rows],
            thresholds=self.thresholds[rows],
        )


def _scale_utilities(
    loss: Floats,  # (b, n)
    over: Floats,  # (b, n), sum of what exceeds thresholds
) -> Floats:
    """Return utilities, (b, n): 1 for the best acceptable design, 0 for the worst one.

    A design above a threshold is not acceptable: its utility is negative, and at least -1. If all
    designs are above a threshold, the designs that exceed the thresholds least count as acceptable.
    """
    over = over - over.min(axis=1, keepdims=True)
    accepted = over <= 0
    low = np.where(accepted, loss, np.inf).min(axis=1, keepdims=True)
    high = np.where(accepted, loss, -np.inf).max(axis=1, keepdims=True)
    span = np.where(high > low, high - low, 1.0)
    inside = np.where(high > low, (high - loss) / span, 1.0)
    return np.where(accepted, inside, np.maximum(-0.2 - over, -1.0))


def _choose_candidates(shares: Floats, users: _UtilitySample, keep: Sequence[int]) -> Ints:
    """Return the rows of designs best under most utility functions, and of ``keep``, (c,)."""
    if len(shares) <= MOST_CANDIDATES:
        return np.arange(len(shares))
    votes = np.zeros(len(shares))
    for start in range(0, PARTICLES, _BLOCK):
        utilities = users._utilities_of(slice(start, start + _BLOCK), shares)  # noqa: SLF001
        votes += np.bincount(np.argmax(utilities, axis=1), minlength=len(shares))
    rows = np.argsort(-votes, kind="stable")[:MOST_CANDIDATES]
    return np.unique([*rows.tolist(), *keep])
