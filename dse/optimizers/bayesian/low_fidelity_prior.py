"""Prior means from modelled lower fidelities, and first designs from the front they predict.

A lower fidelity is a cheap approximation of a metric; the fidelity ladder of a metric holds all of
them, from the cheapest to the metric itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dse.core.batch import Batch, Column
from dse.core.expressions.expression import Expression
from dse.core.pareto import hypervolume, nondominated
from dse.core.problem import Problem
from dse.core.trial import State, Trial
from dse.core.values import Floats, Mask
from dse.optimizers.bayesian.fidelity_agreement import agreement
from dse.optimizers.bayesian.measured_settings import MeasuredSplit
from dse.optimizers.bayesian.metric_model import Inputs
from dse.optimizers.bayesian.output_transform import OutputTransform
from dse.units import units

FIRST = 4
"""First designs, from the front that lower fidelities predict, before the first surrogate."""
_PAIRS, _TRUST = 10.0, 0.5
"""Pairs of measured designs that the initial rank agreement counts for, and that agreement."""
_LEAST = 0.25
"""Rank agreement with measurements at or below which a lower fidelity is not used."""
_ALONE, _TURNS = 8, 2
"""Measured designs after which one of so many designs is chosen without lower fidelities."""
_MARGIN = 0.1
"""Distance of the reference point from the predicted front, as a share of its range."""

Columns = Mapping[str, Column]


class LowFidelityPrior:
    """Predictions of measured objectives and limits by modelled lower fidelities.

    For each measured metric, the highest modelled fidelity is used, if it depends only on
    parameters that the measured metric depends on. An objective or limit has a prediction if each
    of its measured metrics has such a fidelity.

    Args:
        problem: problem to optimise.
        split: its split into measured and modelled metrics.
    """

    def __init__(self, problem: Problem, split: MeasuredSplit) -> None:
        self._problem = problem
        self._split = split
        self._fidelities = {
            metric: fidelity
            for metric, ladder in problem.ladders.items()
            if (fidelity := _select_modelled_fidelity(problem, metric, ladder))
        }
        learnt = [problem.objectives[place] for place in split.learnt]
        self.covers_objectives = bool(learnt) and all(self.covers(o.expression) for o in learnt)
        """Whether lower fidelities predict every objective that has to be measured."""

    @staticmethod
    def of(problem: Problem, split: MeasuredSplit) -> LowFidelityPrior | None:
        """Return the predictions for a problem; ``None`` if no metric has lower fidelities."""
        return LowFidelityPrior(problem, split) if problem.ladders else None

    def covers(self, expression: Expression) -> bool:
        """Return whether modelled lower fidelities exist for all measured metrics of a formula."""
        measured = expression.names & self._problem.measured
        return bool(measured) and measured <= self._fidelities.keys()

    def columns(self, batch: Batch) -> tuple[Columns, Mask]:
        """Return parameters and predicted metrics of n designs, and a validity mask, (n,).

        A measured metric is replaced by the value of its lower fidelity.

        Args:
            batch: n designs.
        """
        problem = self._problem
        known = problem.known(batch)
        found = {name: Column(values) for name, values in known.columns.items()}
        for metric, fidelity in self._fidelities.items():
            lower, upper = problem.metrics[fidelity].unit, problem.metrics[metric].unit
            factor = units.converted(1.0, lower, upper)
            found[metric] = Column(factor * np.asarray(known.columns[fidelity], dtype=float))
        fine = np.ones(len(batch), dtype=bool)
        fine[list(known.failures)] = False
        return {**batch.columns, **found}, fine

    def is_used(self, trials: Sequence[Trial]) -> bool:
        """Return whether lower fidelities rank the measured designs correctly in all objectives.

        Args:
            trials: the first n trials of the study that finished, for any n.
        """
        if not self.covers_objectives:
            return False
        done = [trial for trial in trials if trial.state is State.DONE]
        if not done:
            return True
        columns, _ = self.columns(self._problem.space.batch([trial.design for trial in done]))
        low = self._problem.losses(columns, len(done))
        high = self._problem.trial_losses(done)
        return all(agrees(low[:, place], high[:, place]) for place in self._split.learnt)

    def choose_first(self, pool: Batch, tried: Batch, count: int) -> Batch:
        """Return up to ``count`` designs of the predicted front that span the largest hypervolume.

        Designs are chosen greedily, each for the largest increase of the joint hypervolume.

        Args:
            pool: candidates.
            tried: designs that are measured or pending; their predicted losses count as attained.
            count: number of designs.
        """
        losses = self._losses(pool)
        rows = np.flatnonzero(np.isfinite(losses).all(axis=1))
        rows = rows[nondominated(losses[rows])] if len(rows) else rows
        front = losses[rows]
        got = self._losses(tried)
        got = got[np.isfinite(got).all(axis=1)]
        if not len(rows):
            return pool.take(rows)
        reference = self._reference(front)
        chosen: list[int] = []
        for _ in range(min(count, len(rows))):
            held = np.vstack([got, front[chosen]])
            volumes = [
                -1.0 if at in chosen else hypervolume(np.vstack([held, front[at]]), reference)
                for at in range(len(rows))
            ]
            chosen.append(int(np.argmax(volumes)))
        return pool.take(rows[chosen])

    def _reference(self, front: Floats) -> Floats:
        """Return the user's reference point, or one beyond the predicted front, (m,).

        The user's point is not used if no design is predicted to be better in all objectives.

        Args:
            front: predicted losses, (k, m), on the scales of hypervolumes.
        """
        problem = self._problem
        if problem.fixed_reference is not None:
            pairs = zip(problem.objectives, problem.fixed_reference, strict=True)
            fixed = np.array([float(o.on_scale(np.asarray(o.sign * value))) for o, value in pairs])
            if (front < fixed).all(axis=1).any():
                return fixed
        width = np.ptp(front, axis=0)
        return np.asarray(front.max(axis=0) + _MARGIN * np.where(width > 0, width, 1.0))

    def _losses(self, batch: Batch) -> Floats:
        """Return the predicted losses of designs, (n, m), on the scales of hypervolumes."""
        if not len(batch):
            return np.zeros((0, len(self._problem.objectives)))
        columns, fine = self.columns(batch)
        losses = self._problem.on_scales(self._problem.losses(columns, len(batch)))
        return np.where(fine[:, None], losses, np.nan)


@dataclass(frozen=True, slots=True, kw_only=True)
class LowFidelityInputs:
    """Encoding of designs for a Gaussian process whose prior mean is a lower fidelity.

    The last column holds the prediction of the lower fidelity, on the scale of the losses that the
    process is fitted to, so that a perfect prediction has a slope of 1.
    """

    inputs: Inputs
    fidelities: LowFidelityPrior
    losses_of: Callable[[Columns, int], Floats]
    warp: OutputTransform

    def points(self, batch: Batch) -> Floats:
        """Encode designs as model inputs; the lower fidelity's prediction is last, (n, c + 1)."""
        columns, fine = self.fidelities.columns(batch)
        with np.errstate(all="ignore"):
            mean = self.warp.learnt(self.losses_of(columns, len(batch)))
        known = fine & np.isfinite(mean)
        worst = mean[known].max() if known.any() else 0.0
        return np.column_stack([self.inputs.points(batch), np.where(known, mean, worst)])


def agrees(low: Floats, high: Floats) -> bool:
    """Return whether a lower fidelity ranks the measured designs as the measurements do.

    The rank correlation is shrunk towards :data:`_TRUST`, which counts as :data:`_PAIRS` pairs of
    designs.

    Args:
        low: (n,), losses that the lower fidelity predicts.
        high: (n,), measured losses.
    """
    score, pairs = agreement(low, high)
    return (score + _TRUST * _PAIRS) / (pairs + _PAIRS) > _LEAST


def is_without_fidelity(count: int) -> bool:
    """Return whether to ignore lower fidelities for the design after ``count`` measurements.

    Some designs are chosen without lower fidelities, because lower fidelities would otherwise steer
    the search away from designs about which they are wrong, and no measurement would reveal the
    error.
    """
    return count >= _ALONE and count % _TURNS == 0


def _select_modelled_fidelity(problem: Problem, metric: str, ladder: Sequence[str]) -> str:
    reads = problem.sources[metric].reads
    found = [
        fidelity
        for fidelity in ladder[:-1]
        if problem.sources[fidelity].kind == "modelled" and problem.sources[fidelity].reads <= reads
    ]
    return found[-1] if found else ""
