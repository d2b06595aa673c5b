"""Training data of a surrogate: encoded designs and standardised targets of finished trials."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import moocore
import numpy as np

from dse.core.encoding import encoded_designs
from dse.core.expressions.syntax import Binary, Name, Node, Number
from dse.core.objective import Objective
from dse.core.pareto import nondominated, reference
from dse.core.problem import Problem
from dse.core.trial import State, Trial
from dse.core.values import Floats, Ints, Mask
from dse.optimizers.support.constraints import learnt_limits, trial_violations

MANY_OBJECTIVES = 4
"""Most objectives for hypervolume improvement; with more, a random scalarisation is used."""

MOST_BASELINE = 96
"""Most trials whose posterior is sampled jointly by the noisy acquisition functions."""

_DECADE = 10.0
_NEAREST = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """Scales of an objective's losses for the surrogate and for the acquisition function.

    On the surrogate's scale (:meth:`learnt`), losses are standardised, after a logarithm if they
    span a decade on one side of zero (``log``: 1 for positive, -1 for negative losses, else 0). On
    the acquisition function's scale (:meth:`judged`), losses are fractions of the distance from the
    reference point (0) to the best loss found (-1), so that hypervolumes are proportional to those
    in the user's own units.
    """

    log: Literal[-1, 0, 1]
    centre: float
    width: float
    reference: float
    reach: float

    @staticmethod
    def of(losses: Floats, reference: float, *, plain: bool = False) -> Scale:
        """Choose the scales for an objective's losses, (n,), and its reference value.

        Args:
            losses: (n,), on the objective's own scale.
            reference: the reference point's loss.
            plain: whether to take no logarithm.

        Raises:
            FloatingPointError: their range is not a finite number.
        """
        log: Literal[-1, 0, 1] = 0
        low, high = float(losses.min()), float(losses.max())
        if not plain and low > 0 and high > _DECADE * low:
            log = 1
        if not plain and high < 0 and low < _DECADE * high:
            log = -1
        mapped = log * np.log(log * losses) if log else losses
        centre, width = float(mapped.mean()), float(mapped.std())
        reach = max(reference - low, high - low, 1e-9 * abs(low))
        if not np.isfinite([centre, width, reach]).all():
            raise FloatingPointError(f"losses from {low:g} to {high:g} are too far apart")
        return Scale(
            log=log, centre=centre, width=width or 1.0, reference=reference, reach=reach or 1.0
        )

    def learnt(self, losses: Floats) -> Floats:
        """Map losses to the standardised scale on which the surrogate is fitted."""
        mapped = self.log * np.log(self.log * losses) if self.log else losses
        return (mapped - self.centre) / self.width

    def losses(self, learnt: Floats) -> Floats:
        """Map values on the surrogate's standardised scale back to losses."""
        mapped = learnt * self.width + self.centre
        return self.log * np.exp(self.log * mapped) if self.log else mapped

    def judged(self, losses: Floats) -> Floats:
        """Map losses to the acquisition function's scale: reference point 0, best loss -1."""
        return (losses - self.reference) / self.reach

    def variances(self, losses: Floats, spread: Floats) -> Floats:
        """Convert standard errors of losses to variances on the surrogate's scale (first order)."""
        relative = spread / np.abs(losses) if self.log else spread
        return np.asarray((relative / self.width) ** 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class RegressionTarget:
    """Target of a regression: an objective, a limit or the success of trials, with its values.

    ``rows`` masks the training points at which it was observed; ``variances`` are the variances of
    these observations, if known. A target with a ``threshold`` is a limit, which is satisfied if
    the value is at least the threshold.
    """

    rows: Mask  # (n,)
    values: Floats  # (k,), for the k rows
    variances: Floats | None = None  # (k,)
    threshold: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingData:
    """Training data from finished trials: first the objectives as losses, then the limits.

    ``baseline`` marks the feasible trials that a new design has to improve on.
    """

    points: Floats  # (n, coordinates), encoded designs
    targets: tuple[RegressionTarget, ...]
    baseline: Mask  # (n,), at most MOST_BASELINE of them, the best fronts first
    scales: tuple[Scale, ...]  # m of them
    front: Floats  # (f, m), judged losses of the non-dominated feasible trials
    elite: Ints  # (e,), trials of the front; without a feasible one, the least violating


def build_training_data(problem: Problem, trials: Sequence[Trial]) -> TrainingData | None:
    """Return the training data of finished trials; ``None`` while they are too few to fit a model.

    At least two trials must have metrics, and one must be feasible or a limit on a measured metric
    must vary.
    """
    losses = _on_scales(problem, problem.trial_losses(trials))
    violations = trial_violations(problem, trials)
    outside = np.array([trial.state is State.OUTSIDE for trial in trials], dtype=bool)
    done = np.isfinite(violations) | (outside & np.isfinite(losses).all(axis=1))
    feasible = violations == 0
    limits = [*_limit_targets(problem, trials, done), *_success(done | outside)]
    if done.sum() < 2 or not (feasible.any() or limits):
        return None
    front = np.flatnonzero(feasible)[nondominated(losses[feasible])]
    point = _reference(problem, trials, losses[front] if len(front) else losses[done])
    scales = [
        Scale.of(losses[done, place], float(point[place]), plain=objective.log)
        for place, objective in enumerate(problem.objectives)
    ]
    objectives = [
        RegressionTarget(
            rows=done,
            values=scale.learnt(losses[done, place]),
            variances=_variances(problem.objectives[place], scale, trials, done),
        )
        for place, scale in enumerate(scales)
    ]
    return TrainingData(
        points=encoded_designs(problem.space, [trial.design for trial in trials]),
        targets=(*objectives, *limits),
        baseline=_baseline(losses, feasible),
        scales=tuple(scales),
        front=np.column_stack([s.judged(losses[front, i]) for i, s in enumerate(scales)]),
        elite=front if len(front) else _nearest(violations, outside),
    )


def _baseline(losses: Floats, feasible: Mask) -> Mask:
    """Return the mask of the feasible trials, (n,), or of a subset if there are too many.

    The subset is from the best fronts, earlier trials first. It is limited because the noisy
    hypervolume improvement samples the posterior of all these trials jointly.
    """
    rows = np.flatnonzero(feasible)
    if len(rows) <= MOST_BASELINE:
        return feasible
    order = np.argsort(moocore.pareto_rank(losses[rows]), kind="stable")
    kept = np.zeros(len(feasible), dtype=bool)
    kept[rows[order[:MOST_BASELINE]]] = True
    return kept


def _on_scales(problem: Problem, losses: Floats) -> Floats:
    """Return losses, (n, m), with logarithms of the objectives that have a log scale."""
    found = [o.on_scale(losses[:, place]) for place, o in enumerate(problem.objectives)]
    return np.column_stack(found)


def _nearest(violations: Floats, outside: Mask) -> Ints:
    """Return the indices of the trials with the least violation, without those of state OUTSIDE.

    The designs of OUTSIDE trials are not in the present space.
    """
    order = np.argsort(violations, kind="stable")
    return order[~outside[order]][:_NEAREST]


def _reference(problem: Problem, trials: Sequence[Trial], losses: Floats) -> Floats:
    """Return the reference point; if not fixed, the worst losses plus a tenth of the range."""
    point = reference(problem, trials)
    if point is not None:
        return _on_scales(problem, point[None, :])[0]
    worst, best = losses.max(axis=0), losses.min(axis=0)
    span = np.where(worst > best, worst - best, np.maximum(np.abs(worst), 1e-12))
    return np.asarray(worst + 0.1 * span)


def _variances(
    objective: Objective, scale: Scale, trials: Sequence[Trial], done: Mask
) -> Floats | None:
    """Return the variances of an objective's values on the surrogate's scale, or ``None``.

    They are known if the objective is a single metric and every trial has the metric's standard
    error.
    """
    metric, factor = bare_metric(objective.expression.node)
    kept = [trial for trial, ok in zip(trials, done, strict=True) if ok]
    if not all(metric in trial.spread for trial in kept):
        return None
    units = factor / objective.scale
    if objective.log:
        relative = [trial.spread[metric] / trial.metrics[metric] for trial in kept]
        return np.asarray((np.array(relative) / scale.width) ** 2)
    return scale.variances(
        np.array([trial.metrics[metric] for trial in kept]) * units,
        np.array([trial.spread[metric] for trial in kept]) * units,
    )


def bare_metric(node: Node) -> tuple[str, float]:
    """Return the metric's name and unit factor if the formula is a single metric.

    Otherwise the name is empty.
    """
    match node:
        case Name():
            return node.name, 1.0
        case Binary(operator="*", left=Name() as name, right=Number() as unit):
            return name.name, float(unit.value)
        case _:
            return "", 1.0


def _limit_targets(problem: Problem, trials: Sequence[Trial], done: Mask) -> list[RegressionTarget]:
    columns = problem.columns(trials)
    targets = []
    for limit in learnt_limits(problem):
        slacks = limit.slacks(columns, len(trials))
        rows = done & np.isfinite(slacks)
        width = float(slacks[rows].std()) if rows.any() else 0.0
        if width > 1e-12:
            centre = float(slacks[rows].mean())
            values = (slacks[rows] - centre) / width
            targets.append(RegressionTarget(rows=rows, values=values, threshold=-centre / width))
    return targets


def _success(done: Mask) -> list[RegressionTarget]:
    """Return the evaluation success (1, else -1) as a regression target in a list.

    The list is empty while no evaluation has failed.
    """
    if done.all():
        return []
    return [
        RegressionTarget(
            rows=np.ones(len(done), dtype=bool), values=np.where(done, 1.0, -1.0), threshold=0.0
        )
    ]
