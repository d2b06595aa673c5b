"""Prior means from a library of studies, weighted by their agreement with measured values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri
from scipy.stats import rankdata

from dse.core.batch import Batch, Column
from dse.core.encoding import blocks, encoded, encoded_designs
from dse.core.expressions.expression import Expression
from dse.core.problem import Prior, Problem
from dse.core.values import Floats
from dse.optimizers.bayesian.effects_model import EffectsModel, find_levels
from dse.optimizers.bayesian.gaussian_process import owners_of

_LARGEST = 600
"""Most designs that a member's model is fitted to, evenly spaced."""
_WORST = 0.99
"""Largest leave-one-out error of a member's model, relative to that of the mean of its values."""
_DRAWS = 200
"""Bootstrap samples of the measured designs, from which the weights are computed."""
_PAIRS = 10.0
"""Number of observed pairs that the initial trust is worth."""
_EQUAL = 20.0
"""Number of observed pairs that equal weights are worth."""
_TRUST = 0.5
"""Initial trust: the rank correlation that is assumed before anything is measured."""
_LEAST = 0.05
"""Largest rank correlation of members that are ignored."""
_FEWEST = 4
"""Measured designs below which weights are equal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberWeights:
    """Weights of earlier studies (members of a library) in the prediction of one metric.

    ``trust`` is the expected correlation, from 0 to 1, of the metric with the weighted mean of the
    members' predictions.
    """

    studies: tuple[str, ...]
    weights: Floats  # (k,), which sum to 1, or are all 0
    trust: float

    @property
    def text(self) -> str:
        """Trust and weights of earlier studies as text, the largest weight first.

        Studies without weight are named at the end.
        """
        order = np.argsort(-self.weights, kind="stable").tolist()
        used = [f"{self.studies[k]} {self.weights[k]:.2f}" for k in order if self.weights[k] > 0]
        unused = [self.studies[k] for k in order if not self.weights[k] > 0]
        text = f"trust {self.trust:.2f}"
        text += f"; {', '.join(used)}" if used else ""
        return text + (f"; no weight: {', '.join(unused)}" if unused else "")


class LibraryMean:
    """Predictions of a metric by earlier studies (members of a library), one model per study.

    The values of each member are replaced by their normal scores, so that members in other units
    or ranges can be averaged.

    Source:
        Feurer, Letham, Hutter, Bakshy: Scalable Meta-Learning for Bayesian Optimization, 2018 (the
        ranking-weighted ensemble); Salinas, Shen, Perrone: A Quantile-based Approach for
        Hyperparameter Transfer Learning, ICML 2020 (the normal scores).
    """

    def __init__(
        self,
        problem: Problem,
        names: frozenset[str],
        members: Sequence[tuple[str, EffectsModel]],
    ) -> None:
        self._problem = problem
        self._names = names
        layout = blocks(problem.space, names)
        self._owners = owners_of([block.stop - block.start for block in layout])
        self._models = tuple(model for _, model in members)
        self.studies = tuple(study for study, _ in members)

    @staticmethod
    def of(
        problem: Problem, expression: Expression, sign: float, names: frozenset[str]
    ) -> LibraryMean | None:
        """Fit one model of a formula for each earlier study that has all metrics of the formula.

        The result is ``None`` if there is no such study.

        Args:
            problem: the problem, whose ``priors`` include the members of libraries.
            expression: the formula of an objective or a limit.
            sign: factor that turns the formula's values into losses: 1 or -1.
            names: the parameters that the formula depends on.
        """
        found = []
        for prior in problem.priors:
            if prior.library:
                model = _fit_member(problem, prior, expression, sign, names)
                if model is not None:
                    found.append((prior.study, model))
        return LibraryMean(problem, names, found) if found else None

    def members(self, batch: Batch) -> Floats:
        """Return the normal scores of n designs' losses as predicted by k studies, (n, k)."""
        levels = find_levels(encoded(self._problem.space, batch, self._names), self._owners)
        return np.column_stack([model.predict(levels) for model in self._models])

    def mean(self, batch: Batch, weights: Floats) -> Floats:
        """Return the weighted mean of the predictions of the k earlier studies, (n,).

        Args:
            batch: n designs.
            weights: weight of each study, (k,).
        """
        levels = find_levels(encoded(self._problem.space, batch, self._names), self._owners)
        used = np.flatnonzero(weights).tolist()
        parts = [weights[place] * self._models[place].predict(levels) for place in used]
        return np.asarray(sum(parts, np.zeros(len(batch))))

    def weigh(self, members: Floats, losses: Floats) -> MemberWeights:
        """Return the weights of k earlier studies (members), given the losses measured here, (k,).

        The weight of a member is the share of bootstrap samples of the measured designs in which it
        orders more pairs of designs correctly than any other member. Members whose rank correlation
        is at most :data:`_LEAST` have no weight, so that many unrelated members cannot outweigh a
        related one. While few designs are measured, their order is mostly chance; the weights are
        then mixed with equal weights.

        Args:
            members: (n, k), the members' predictions for the measured designs.
            losses: (n,), the measured losses.
        """
        count, size = len(losses), len(self.studies)
        if count < _FEWEST:
            return self._weights(np.full(size, 1.0 / size), _TRUST)
        own = _signs(losses)
        pairs = float(np.abs(own).sum()) / 2
        agreed = np.array([_signs(column) * own for column in members.T])  # (k, n, n)
        usable = _trust(agreed.sum(axis=(1, 2)) / 2, pairs) > _LEAST
        if not usable.any():
            return self._weights(np.zeros(size), 0.0)
        best = self._share_of_wins(np.where(usable[:, None, None], agreed, -1.0))
        share = pairs / (pairs + _EQUAL)
        weights = usable * (share * best + (1 - share) / usable.sum())
        weights /= weights.sum()
        score = float((_signs(members @ weights) * own).sum()) / 2
        return self._weights(weights, max(0.0, float(_trust(np.array(score), pairs))))

    def _share_of_wins(self, agreed: Floats) -> Floats:
        """Return the share of bootstrap samples in which each member has the best score, (k,).

        Args:
            agreed: (k, n, n), 1 for each pair of designs that a member orders correctly, else -1
                or 0.
        """
        count = agreed.shape[1]
        rng = self._problem.rng(count)
        drawn = rng.multinomial(count, np.full(count, 1.0 / count), size=_DRAWS)  # (s, n)
        scores = np.einsum("si,kij,sj->sk", drawn, agreed, drawn, optimize=True)
        best = scores == scores.max(axis=1)[:, None]
        return np.asarray((best / best.sum(axis=1)[:, None]).mean(axis=0))

    def _weights(self, weights: Floats, trust: float) -> MemberWeights:
        return MemberWeights(studies=self.studies, weights=weights, trust=trust)


def _trust(scores: Floats, pairs: float) -> Floats:
    """Return rank correlations, from -1 to 1, shrunk towards :data:`_TRUST` while pairs are few.

    Args:
        scores: numbers of concordant minus discordant pairs of measured designs.
        pairs: number of pairs with different losses.
    """
    return np.asarray((scores + _TRUST * _PAIRS) / (pairs + _PAIRS))


def _signs(values: Floats) -> Floats:
    """Return the sign of the difference of each pair of values, (n, n)."""
    return np.sign(values[:, None] - values[None, :])


def _fit_member(
    problem: Problem, prior: Prior, expression: Expression, sign: float, names: frozenset[str]
) -> EffectsModel | None:
    values = _values_of(prior, expression)
    if values is None:
        return None
    rows = np.flatnonzero(np.isfinite(values))
    if len(rows) > _LARGEST:
        rows = rows[np.linspace(0, len(rows) - 1, _LARGEST).round().astype(int)]
    if len(rows) < 2:
        return None
    layout = [block for block in blocks(problem.space) if block.parameter.name in names]
    columns = [place for block in layout for place in range(block.start, block.stop)]
    points = encoded_designs(problem.space, [prior.designs[row] for row in rows.tolist()])
    owners = owners_of([block.stop - block.start for block in layout])
    scores = ndtri((rankdata(sign * values[rows]) - 0.5) / len(rows))
    model = EffectsModel.fit(points[:, columns], scores, owners)
    return None if model is None or model.error > _WORST else model


def _values_of(prior: Prior, expression: Expression) -> Floats | None:
    """Return the values of a formula for a study's designs, (n,); NaN where unknown.

    The result is ``None`` if the formula reads a metric that the study does not have.
    """
    columns = {}
    for name in expression.names:
        if name in prior.metrics:
            columns[name] = Column(prior.metrics[name])
        elif any(name in design for design in prior.designs):
            columns[name] = Column.of([design.get(name) for design in prior.designs])
        else:
            return None
    found = expression.values(columns, len(prior.designs))
    values = np.asarray(found.values, dtype=float)
    return values if found.absent is None else np.where(found.absent, np.nan, values)
