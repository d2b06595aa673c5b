"""Gap of a study: the hypervolume that designs not yet measured may still add to its front."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dse.core.batch import concatenate_batches
from dse.core.design import Design
from dse.core.pareto import ParetoSet, hypervolume, hypervolume_share, nondominated
from dse.core.problem import Problem
from dse.core.trial import Trial
from dse.core.values import Floats, Mask
from dse.optimizers.bayesian.conformal_band import ConformalBand, MeasuredValues
from dse.optimizers.bayesian.gap_candidates import (
    GapCandidates,
    breed_designs,
    is_listed,
    list_candidates,
    sample_designs,
)
from dse.optimizers.bayesian.measured_settings import MeasuredSplit, keys

CONFIDENCE = 0.9
"""Default probability with which the gap is an upper bound."""

_ROUNDS = 6
"""Rounds of the search for optimistic designs in a space that is too large to list."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HypervolumeGap:
    """Upper bound, with a confidence, on the share of the hypervolume that a study still misses.

    ``share`` is ``1 - found / optimistic``, from 0 to 1: ``found`` is the hypervolume of the front,
    ``optimistic`` the hypervolume of the front and the optimistic losses of all other designs.
    Objectives with a log scale count by their logarithms, as in the hypervolume of the front.
    """

    share: float
    confidence: float
    found: float | None  # share of the box between reference and ideal point; None if m = 1
    undecided: Floats  # (k, m), optimistic losses that no found design dominates
    designs: int  # that were considered
    is_listed: bool  # whether these are all legal designs


class GapEstimator:
    """Estimator of the hypervolume that a study still misses, computed from its trials.

    Modelled metrics are exact, and measured metrics are known for all designs that share the
    measured inputs of a finished trial. Other measured metrics get the optimistic end of a
    conformal band around a Gaussian process.

    Args:
        problem: the problem.
        confidence: probability with which the gap is an upper bound, between 0 and 1.
        completes: whether designs that reuse measurements will be added to the front; such designs
            then count as found.
    """

    def __init__(
        self, problem: Problem, *, confidence: float = CONFIDENCE, completes: bool = False
    ) -> None:
        self._problem = problem
        self._confidence = confidence
        self._completes = completes
        self._split = MeasuredSplit(problem=problem)
        self._band = ConformalBand(problem=problem, split=self._split)
        self._listed: GapCandidates | None = None

    def estimate(self, trials: Sequence[Trial]) -> HypervolumeGap | None:
        """Return the hypervolume gap after the finished trials; ``None`` while it is unknown.

        The gap is unknown until the reference point of the hypervolume is fixed, a feasible design
        is found, and enough measurements were predicted for the confidence.

        Args:
            trials: the finished trials; they extend those of the last call.
        """
        problem, split = self._problem, self._split
        front = ParetoSet.of(problem, trials)
        values = MeasuredValues.of(problem, split, trials)
        if self._is_learnt:
            self._band.learn(values)
        if front.reference is None or not len(front.losses):
            return None
        if self._is_learnt and not self._band.is_calibrated(self._confidence):
            return None
        record = _Record(
            front=front,
            values=values,
            taken=tuple(t.design for t in trials if problem.space.knows(t.design)),
            finished=len(trials),
        )
        looks = [self._look_at_all(record)] if is_listed(problem) else self._search(record)
        found = np.vstack([front.losses, *(look.losses[look.free] for look in looks)])
        hoped = np.vstack([front.losses[:0], *(look.losses[look.open] for look in looks)])
        return self._gap(front.reference, found, hoped, sum(len(look.losses) for look in looks))

    @property
    def _is_learnt(self) -> bool:
        return bool(self._split.learnt or self._split.learnt_limits)

    def _gap(self, reference: Floats, found: Floats, hoped: Floats, count: int) -> HypervolumeGap:
        """Return the gap between the losses found, (n, m), and optimistic losses, (k, m).

        Args:
            reference: reference point, as losses, (m,).
            found: losses that need no further measurement.
            hoped: optimistic losses of designs that are not measured.
            count: number of designs considered.
        """
        every = np.vstack([found, hoped])
        inside = (every < reference).all(axis=1)
        kept = nondominated(every)
        scaled = self._problem.on_scales
        corner, known = scaled(reference), scaled(found[nondominated(found)])
        volume = hypervolume(known, corner)
        best = max(hypervolume(scaled(every[kept]), corner), volume)
        several = len(reference) > 1
        return HypervolumeGap(
            share=1.0 - volume / best if best > 0 else 1.0,
            confidence=self._confidence,
            found=hypervolume_share(volume, corner, known.min(axis=0)) if several else None,
            undecided=every[len(found) :][(kept & inside)[len(found) :]],
            designs=count,
            is_listed=is_listed(self._problem),
        )

    def _look_at_all(self, record: _Record) -> _Look:
        self._listed = self._listed or list_candidates(self._problem, self._split)
        return self._look_at(self._listed, record)

    def _search(self, record: _Record) -> list[_Look]:
        """Search a space too large to list for designs whose optimistic losses are good."""
        space, looks = self._problem.space, list[_Look]()
        batch = sample_designs(self._problem, record.finished)
        best = space.batch([trial.design for trial in record.front.trials])
        losses = record.front.losses
        for step in range(_ROUNDS):
            candidates = GapCandidates(self._problem, self._split, batch)
            look = self._look_at(candidates, record)
            looks.append(look)
            rows = np.flatnonzero(look.open)
            every = np.vstack([losses, look.losses[rows]])
            kept = np.flatnonzero(nondominated(every))
            losses = every[kept]
            best = concatenate_batches([best, candidates.batch.take(rows)]).take(kept)
            batch = breed_designs(self._problem, best, record.finished, step)
        return looks

    def _look_at(self, candidates: GapCandidates, record: _Record) -> _Look:
        """Return the optimistic losses of designs, exact where no measurement is needed."""
        values, count = record.values, len(self._split.learnt)
        width = self._band.width(self._confidence) if self._is_learnt else np.zeros(0)
        best = self._band.optimistic(candidates.distinct, width)
        names = sorted(self._split.measured_parameters)
        measured = {key: row for row, key in enumerate(keys(values.batch, names))}
        rows = np.array([measured.get(key, -1) for key in keys(candidates.distinct, names)], int)
        best[rows >= 0] = values.values[rows[rows >= 0]]
        chosen = [self._problem.objectives[place] for place in self._split.learnt]
        pairs = zip(chosen, best.T[:count], strict=True)
        columns = [objective.off_scale(column) for objective, column in pairs]
        losses = candidates.losses(np.column_stack([best[:, :0], *columns]))
        kept: Mask = np.asarray((best[:, count:] <= 0).all(axis=1))
        usable: Mask = np.asarray(np.isfinite(losses).all(axis=1))
        usable &= kept[candidates.owners] & candidates.are_new(record.taken)
        free = (rows >= 0)[candidates.owners] & self._completes
        return _Look(losses=losses, free=usable & free, open=usable & ~free)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Record:
    """Front, measured values and designs of the ``finished`` trials."""

    front: ParetoSet
    values: MeasuredValues
    taken: tuple[Design, ...]
    finished: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Look:
    """Losses of designs, (n, m), with masks of the designs that are known and not known."""

    losses: Floats
    free: Mask
    open: Mask
