"""Posterior of the grey-box optimizer: surrogates fitted to finished trials, and an archive.

The archive holds the losses attained by trials and by designs that share their measurements.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from dse.core.batch import Batch
from dse.core.pareto import nondominated
from dse.core.problem import Problem
from dse.core.trial import State, Trial
from dse.core.values import Floats, Ints, Mask
from dse.optimizers.bayesian.conditional_fronts import ConditionalFront, ConditionalFrontCache
from dse.optimizers.bayesian.expected_improvement import Archive
from dse.optimizers.bayesian.measured_settings import MeasuredSplit, firsts, keys
from dse.optimizers.bayesian.metric_model import Encoder, Prediction, Surrogate
from dse.optimizers.bayesian.model_fitting import ModelFitter
from dse.optimizers.bayesian.output_transform import IDENTITY, Magnitude

_LEAST = 2
_MARGIN = 0.1
_SURE = 1e-9
_LIKELY = 0.5
_RECENT, _PER_FAILURE = 8, 2.0
"""Trials whose failures count for the caution of the next one, and what each failure adds."""
_TWO = 2
_HOPE = 2.0
"""Standard deviations by which the front may extend beyond its prediction."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Posterior:
    """Surrogates of measured objectives and limits, with the losses attained so far."""

    objectives: tuple[tuple[Encoder, Surrogate], ...]
    limits: tuple[tuple[Encoder, Surrogate], ...]
    archive: Archive
    feasible: bool
    magnitudes: tuple[Magnitude, ...] = ()
    """Map that was applied to each learnt loss before fitting."""
    _recent: list[tuple[Batch, list[Prediction]]] = field(default_factory=list, compare=False)
    """Last batch with its predictions, which several steps of one suggestion need."""
    success: tuple[tuple[Encoder, Surrogate], ...] = ()
    """Surrogate of failure, above 0, and success, below 0; empty while no measurement failed."""
    caution: float = 1.0
    """Power to which the probability of success is raised, see :func:`caution_after`."""
    transformed: bool = False
    """Whether losses are on the scale of the Gaussian process, see :meth:`on_model_scale`."""

    def predictions(self, batch: Batch) -> list[Prediction]:
        """Return the posterior of each measured objective at n designs."""
        if not self._recent or self._recent[0][0] is not batch:
            found = [predictor.at(inputs.points(batch)) for inputs, predictor in self.objectives]
            self._recent[:] = [(batch, found)]
        raw = self._recent[0][1]
        return [replace(one, warp=IDENTITY) for one in raw] if self.transformed else raw

    def on_model_scale(self, batch: Batch) -> Posterior:
        """Return surrogates and archive with losses on the scale on which processes are fitted.

        The order of a single objective's values is the same on any increasing scale. On the scale
        of the Gaussian process the posterior is normal; in natural units, the tail of a log-normal
        posterior would dominate the expected improvement. With several objectives nothing is
        changed, because hypervolumes depend on the scale.

        Args:
            batch: one or more designs, at which the transform is read.
        """
        if len(self.objectives) != 1 or self.archive.known.shape[1] or not self.feasible:
            return self
        warp = self.predictions(batch)[0].warp
        archive = self.archive
        with np.errstate(all="ignore"):
            learnt, point = warp.learnt(archive.learnt), warp.learnt(archive.learnt_reference)
        if not (np.isfinite(learnt).all() and np.isfinite(point).all()):
            return self
        own = replace(archive, learnt=learnt, learnt_reference=point)
        return replace(self, archive=own, transformed=True)

    def reaching(self, batch: Batch, hope: float) -> Posterior:
        """Return the surrogates with a reference point beyond the front that they predict.

        The front found so far may be a corner of the true front. If all objectives are learnt, the
        front of these designs' predicted means shows the expected extent of the true front, and the
        front of values that are better by ``hope`` standard deviations shows its possible extent.
        With a single objective the point is not moved: near the predicted optimum it would exclude
        the best loss found.

        Args:
            batch: designs that may be on the front.
            hope: number of standard deviations.
        """
        archive = self.archive
        if len(self.objectives) < _LEAST or archive.known.shape[1] or not self.feasible:
            return self
        likely = self.chances(batch) > _LIKELY
        predictions = self.predictions(batch)
        means = np.column_stack([one.at(0.0) for one in predictions])[likely]
        every = np.vstack([means[nondominated(means)], archive.learnt])
        reference = beyond(every[nondominated(every)], every)
        if hope and len(means):
            hoped = np.column_stack([one.at(-hope) for one in predictions])[likely]
            far = means[nondominated(hoped)]
            reference = np.maximum(reference, beyond(far, np.vstack([far, archive.learnt])))
        return replace(self, archive=replace(archive, learnt_reference=reference))

    def covering(self, batch: Batch, fronts: Sequence[ConditionalFront], groups: Ints) -> Posterior:
        """Return the surrogates with a reference point beyond the predicted feasible front.

        The feasible front found so far may be a corner of the true one: limits may exclude the
        designs that were measured at its other end.

        Args:
            batch: designs that may be on the front.
            fronts: fronts over the parameters that no measurement reads.
            groups: (n,), the front of each design; -1 without one.
        """
        archive = self.archive
        rows = np.flatnonzero((groups >= 0) & (self.chances(batch) > _LIKELY))
        if not self.feasible or not len(rows):
            return self
        known = [fronts[at].losses for at in groups[rows].tolist()]
        means = [one.at(0.0)[rows] for one in self.predictions(batch)]
        learnt = np.column_stack(means) if means else np.zeros((len(rows), 0))
        learnt = np.repeat(learnt, [len(own) for own in known], axis=0)
        every = np.vstack(
            [np.hstack([learnt, np.vstack(known)]), np.hstack([archive.learnt, archive.known])]
        )
        old = np.append(archive.learnt_reference, archive.known_reference)
        new = np.maximum(old, beyond(every[nondominated(every)], every))
        cut = learnt.shape[1]
        moved = replace(archive, learnt_reference=new[:cut], known_reference=new[cut:])
        return replace(self, archive=moved)

    def chances(self, batch: Batch) -> Floats:
        """Return the probability that each design succeeds and keeps measured limits, (n,)."""
        chance = np.ones(len(batch))
        for inputs, predictor in self.limits:
            chance *= predictor.at(inputs.points(batch)).below(np.zeros(1))[:, 0]
        for inputs, predictor in self.success:
            chance *= predictor.at(inputs.points(batch)).below(np.zeros(1))[:, 0] ** self.caution
        return chance

    def awaiting(self, batch: Batch, known: Sequence[Floats]) -> Posterior:
        """Return the posterior updated as if pending designs had their predicted losses.

        Args:
            batch: n pending designs.
            known: for each pending design, the modelled losses of the r best designs that share its
                measurement, (r, b).
        """
        losses = [one.at(0.0) for one in self.predictions(batch)]
        objectives = tuple(
            (inputs, predictor.condition(inputs.points(batch), values))
            for (inputs, predictor), values in zip(self.objectives, losses, strict=True)
        )
        rows = np.repeat(np.arange(len(batch)), [len(part) for part in known])
        more = np.column_stack(losses)[rows] if losses else np.zeros((len(rows), 0))
        archive = self.archive
        return Posterior(
            objectives=objectives,
            limits=self.limits,
            success=self.success,
            caution=self.caution,
            magnitudes=self.magnitudes,
            archive=Archive(
                learnt=np.vstack([archive.learnt, more]),
                known=np.vstack([archive.known, *known]),
                learnt_reference=archive.learnt_reference,
                known_reference=archive.known_reference,
            ).best,
            feasible=self.feasible,
        )


def fit_posterior(
    problem: Problem,
    split: MeasuredSplit,
    front_cache: ConditionalFrontCache,
    trials: Sequence[Trial],
    fitter: ModelFitter,
    *,
    refit: bool = True,
) -> Posterior | None:
    """Fit surrogates to finished trials; return them with the losses attained.

    The result is ``None`` for fewer than two trials with metrics. Without ``refit`` the surrogates
    keep the hyperparameters of the last fit.
    """
    done = [trial for trial in trials if trial.state is State.DONE]
    if len(done) < _LEAST:
        return None
    losses, slacks, magnitudes = _learnable_values(problem, split, done)
    chosen = [problem.objectives[place] for place in split.learnt]
    objectives = [
        fitter.objective(
            objective, done, losses[:, place], scale=magnitudes[place].scale, refit=refit
        )
        for place, objective in enumerate(chosen)
    ]
    limits = [
        fitter.limit(limit, done, -slacks[:, place], refit=refit)
        for place, limit in enumerate(split.learnt_limits)
        if np.ptp(slacks[:, place]) > _SURE
    ]
    success = fitter.success(split.measured_parameters, trials, refit=refit)
    fine: Mask = np.asarray((slacks >= 0).all(axis=1))
    archive = _archive(
        _Given(problem=problem, split=split, front_cache=front_cache, magnitudes=magnitudes),
        done,
        losses,
        fine,
    )
    return Posterior(
        objectives=tuple(objectives),
        limits=tuple(limits),
        success=tuple(success),
        caution=caution_after(trials),
        archive=archive.best.bounded,
        feasible=bool(len(archive.learnt)),
        magnitudes=magnitudes,
    )


def caution_after(trials: Sequence[Trial]) -> float:
    """Return the exponent of the probability of success: 1, plus 2 per recent failure.

    In a region where the few trials all failed, the surrogate of success is still uncertain, and
    the surrogates of the losses predict large improvements, since nothing was measured there. After
    several failures among the last eight trials, the higher exponent directs the next measurement
    to where success is almost certain; then the exponent falls again.

    Args:
        trials: the finished trials, in order of finishing.
    """
    return 1.0 + _PER_FAILURE * sum(trial.state is State.FAILED for trial in trials[-_RECENT:])


def hope_after(finished: int, problem: Problem) -> float:
    """Return the number of standard deviations by which the front is assumed to extend further.

    It is above 0 only at every other trial and with more than two objectives. With two objectives,
    the boundary of the front is two points, which the search finds anyway; with more, the boundary
    is large, and regions beyond the reference point would never be explored.

    Args:
        finished: number of finished trials.
        problem: the problem.
    """
    return _HOPE if len(problem.objectives) > _TWO and finished % 2 else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Given:
    """Arguments for building an archive of attained losses, apart from the trials."""

    problem: Problem
    split: MeasuredSplit
    front_cache: ConditionalFrontCache
    magnitudes: tuple[Magnitude, ...]

    @property
    def reference(self) -> Floats | None:
        """Reference point set by the user, mapped as the losses are; ``None`` if not set.

        Learnt losses come first, then modelled ones.
        """
        fixed = _fixed_losses(self.problem, self.split)
        if fixed is None:
            return None
        maps = [*self.magnitudes, *self.front_cache.magnitudes]
        values = np.split(fixed, len(fixed))
        return np.concatenate([one(value) for one, value in zip(maps, values, strict=True)])


def _fixed_losses(problem: Problem, split: MeasuredSplit) -> Floats | None:
    if problem.fixed_reference is None:
        return None
    pairs = zip(problem.objectives, problem.fixed_reference, strict=True)
    point = np.array([float(o.on_scale(np.asarray(o.sign * value))) for o, value in pairs])
    return np.asarray(point[[*split.learnt, *split.known]])


def _learnable_values(
    problem: Problem, split: MeasuredSplit, done: Sequence[Trial]
) -> tuple[Floats, Floats, tuple[Magnitude, ...]]:
    """Return learnt losses, (n, a), slacks of learnt limits, (n, l), and each loss's map.

    Losses of objectives with a log scale are those of the logarithms.

    Learnt quantities are those that depend on measurements; n is the number of done trials. Extreme
    losses and slacks are scaled or clipped by the maps, see :class:`Magnitude`.
    """
    columns, size = problem.columns(done), len(done)
    losses = problem.losses(columns, size)
    losses = np.column_stack(
        [problem.objectives[k].on_scale(losses[:, k]) for k in split.learnt] or [losses[:, :0]]
    )
    fixed = _fixed_losses(problem, split)
    also = np.zeros(losses.shape[1]) if fixed is None else fixed
    maps = tuple(
        Magnitude.of(column, also=float(point))
        for column, point in zip(losses.T, also, strict=False)
    )
    found = [one(column) for one, column in zip(maps, losses.T, strict=True)]
    slacks = [limit.slacks(columns, size) for limit in split.learnt_limits]
    slacks = [Magnitude.of(column)(column) for column in slacks]
    return (
        np.column_stack(found) if found else np.zeros((size, 0)),
        np.column_stack(slacks) if slacks else np.zeros((size, 0)),
        maps,
    )


def _archive(given: _Given, done: Sequence[Trial], losses: Floats, fine: Mask) -> Archive:
    """Build the archive: losses of the designs on the conditional front of each measured setting.

    Only feasible measured settings are included, and every design gets the measured losses of its
    part.
    """
    split, front_cache = given.split, given.front_cache
    batch = given.problem.space.batch([trial.design for trial in done])
    rows = np.flatnonzero(fine & np.isfinite(losses).all(axis=1))
    rows = rows[firsts(keys(batch.take(rows), sorted(split.measured_parameters)))]
    if split.free or split.known:
        found = [own.losses for own in front_cache.complete_fronts(batch.take(rows))]
        learnt = losses[np.repeat(rows, [len(part) for part in found])]
        known = np.vstack([np.zeros((0, len(split.known))), *found])
    else:  # each setting is one design without modelled losses: thousands are judged at once
        rows = rows[front_cache.estimate_fronts(batch.take(rows))[1] >= 0]
        learnt, known = losses[rows], np.zeros((len(rows), 0))
    reference = _reference(given, np.hstack([learnt, known]))
    if reference is None:
        reference = np.append(losses.max(axis=0), np.zeros(known.shape[1]))
    return Archive(
        learnt=learnt,
        known=known,
        learnt_reference=reference[: learnt.shape[1]],
        known_reference=reference[learnt.shape[1] :],
    )


def _reference(given: _Given, every: Floats) -> Floats | None:
    """Return the user's reference point, else a point beyond the front by a tenth of its range.

    The reference point of the study's reported hypervolume comes from its first trials and can be
    far off; the search needs one close to the present front. Without any trial the result is
    ``None``.
    """
    if given.problem.fixed_reference is not None:
        return given.reference
    if not len(every):
        return None
    return beyond(every[nondominated(every)], every)


def beyond(front: Floats, every: Floats) -> Floats:
    """Return a reference point beyond a front, (m,): its worst values plus a tenth of its range.

    Args:
        front: (k, m), non-dominated losses.
        every: (n, m), all losses; their range is used where the front's range is 0.
    """
    worst, best, span = front.max(axis=0), front.min(axis=0), np.ptp(every, axis=0)
    width = np.where(worst > best, worst - best, np.where(span > 0, span, np.abs(worst)))
    return np.asarray(worst + _MARGIN * np.maximum(width, 1e-12))
