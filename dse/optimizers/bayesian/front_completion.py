"""Completion of the front, without measurements, by designs that share a measurement.

A measured metric depends on some parameters only: the values of these are a design's measured
setting. All designs with the same measured setting as a measured design have known metrics, exactly
and without a measurement. For each measured setting the conditional front is computed: exactly if
its designs can be listed. Where an objective or a limit mixes measured and other quantities, Pareto
local search is used (L. Paquete, M. Chiarandini, T. Stuetzle: Pareto Local Optimum Sets in the
Biobjective Traveling Salesman Problem, 2004): legal neighbours of every member of the front are
tried until none of them improves the front. The result is then only a local optimum.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from dse.core.batch import Batch, Column, concatenate_batches
from dse.core.design import Design, key_of
from dse.core.pareto import nondominated
from dse.core.problem import Problem
from dse.core.proof import COMPLETED, design_failure_text
from dse.core.trial import Event, State, Trial
from dse.core.values import Floats, Mask
from dse.optimizers.bayesian.conditional_fronts import ConditionalFrontCache, FailedDesigns
from dse.optimizers.bayesian.measured_settings import MeasuredSplit, firsts, keys
from dse.optimizers.exact.chunks import impossible_rows
from dse.protocols import OptimizerTraits

MOST = 500
"""Most designs that are added; of more, evenly spaced ones along the first objective are taken."""

_AT_ONCE = 64
_ROUNDS = 200


class Completion:
    """Optimizer that adds designs to the front that reuse measurements of finished trials.

    Designs that differ only in parameters that no measurement reads share a measurement. Only the
    first trial of each combination of measured parameters counts, so that an interrupted study
    continues with the same designs. Measurements that another process adds meanwhile are reused,
    too.
    """

    traits = OptimizerTraits(batch=64)

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._finished: list[Trial] = []
        self._readings = 0
        self._front: list[Design] | None = None
        self._events: list[Event] = []

    def ask(self, count: int, pending: Sequence[Design] = ()) -> list[Design]:
        if self._front is None:
            self._begin()
        known = {trial.design for trial in self._finished}.union(pending)
        return [design for design in self._front or () if design not in known][:count]

    def tell(self, finished: Sequence[Trial]) -> None:
        self._finished += finished
        if self._front is not None and len(_firsts(self._problem, self._finished)) > self._readings:
            self._front = None

    def events(self) -> list[Event]:
        drained, self._events = self._events, []
        return drained

    def _begin(self) -> None:
        measured = _firsts(self._problem, self._finished)
        self._readings = len(measured)
        self._front, lost = completion_of(self._problem, measured)
        measurements = int(self._problem.measurements(self._finished).sum())
        text = (
            f"{len(self._front)} designs share {measurements} measurements and complete the front; "
            f"they need no measurement{lost_words(self._problem, lost)}"
        )
        self._events.append(Event(kind=COMPLETED, text=text, told=len(self._finished)))


def lost_words(problem: Problem, lost: FailedDesigns) -> str:
    """Return as text how many designs failed among those that could reuse measurements.

    The text names one failed design as an example; it is empty if no design failed.
    """
    if not lost.failed or lost.example is None:
        return ""
    least = "at least " if lost.at_least else ""
    one = design_failure_text(problem, lost.example)
    return f"; {least}{lost.failed:,} designs that share them failed, such as {one}"


def _firsts(problem: Problem, trials: Sequence[Trial]) -> list[Trial]:
    """Return the first finished trial of each combination of parameters that measurements read.

    Trials reused from other studies count too, although they cost no measurement.
    """
    reads = _reads(problem)
    found: dict[str, Trial] = {}
    for trial in trials:
        if trial.state is State.DONE:
            read = {name: trial.design[name] for name in reads if name in trial.design}
            found.setdefault(key_of(read), trial)
    return list(found.values())


def worthwhile(problem: Problem) -> bool:
    """Return whether designs that share a measurement can differ in their modelled metrics."""
    reads = _reads(problem)
    modelled = problem.asked - problem.measured
    return bool(problem.measured and modelled) and any(
        name not in reads for name in problem.space.by_name
    )


def complete_front(problem: Problem, trials: Sequence[Trial]) -> list[Design]:
    """Return the front over all designs that can reuse a measurement of these trials."""
    return completion_of(problem, trials)[0]


def completion_of(problem: Problem, trials: Sequence[Trial]) -> tuple[list[Design], FailedDesigns]:
    """Return the front of designs that can reuse a measurement, and the count of failed designs.

    For each measured combination of the parameters that measurements read, the best designs vary
    the other parameters; they are listed if possible, else searched. If an objective or a limit
    combines a measured metric with one that depends on other parameters, Pareto local search is
    used instead.
    """
    done = [trial for trial in trials if trial.state is State.DONE]
    if not done:
        return [], FailedDesigns()
    if MeasuredSplit(problem=problem).measured_parameters == _reads(problem):
        front_cache = ConditionalFrontCache(problem, MeasuredSplit(problem=problem))
        return _thin_designs(
            *completed_front(problem, done, front_cache)
        ), front_cache.count_failed()
    search = _Search(problem, done)
    for _ in range(_ROUNDS):
        if not search.step():
            break
    return search.designs(), search.lost


def completed_front(
    problem: Problem, trials: Sequence[Trial], front_cache: ConditionalFrontCache
) -> tuple[Batch, Floats]:
    """Return the non-dominated designs that can reuse a measurement, and their losses, (n, m).

    Args:
        problem: problem whose objectives and limits are each measured or modelled, not both.
        trials: finished trials; trials of another state than ``DONE`` are ignored.
        front_cache: cache of fronts over the parameters that no measurement reads, for repeated
            calls.
    """
    split = MeasuredSplit(problem=problem)
    done = [trial for trial in trials if trial.state is State.DONE]
    batch, columns = problem.space.batch([t.design for t in done]), problem.columns(done)
    learnt = problem.losses(columns, len(done))[:, list(split.learnt)]
    kept = np.isfinite(learnt).all(axis=1)
    for limit in split.learnt_limits:
        kept &= limit.slacks(columns, len(done)) >= 0
    rows = np.flatnonzero(kept)
    rows = rows[firsts(keys(batch.take(rows), sorted(split.measured_parameters)))]
    found = front_cache.complete_fronts(batch.take(rows))
    losses = np.zeros((sum(len(own.losses) for own in found), len(problem.objectives)))
    if not len(losses):
        return batch.take(np.arange(0)), losses
    losses[:, list(split.learnt)] = learnt[np.repeat(rows, [len(own.losses) for own in found])]
    losses[:, list(split.known)] = np.vstack([own.losses for own in found])
    best = np.flatnonzero(nondominated(losses))
    return concatenate_batches([own.designs for own in found]).take(best), losses[best]


def _thin_designs(batch: Batch, losses: Floats) -> list[Design]:
    """Return the designs sorted by their losses; of very many, an evenly spaced subset."""
    order = np.lexsort(losses.T[::-1]) if len(losses) else np.zeros(0, dtype=int)
    if len(order) > MOST:
        order = order[np.linspace(0, len(order) - 1, MOST).round().astype(int)]
    return [batch.design(int(place)) for place in order]


class _Search:
    """Pareto local search: an archive of designs, whose neighbours are explored step by step."""

    def __init__(self, problem: Problem, done: Sequence[Trial]) -> None:
        self._problem = problem
        self._reads = sorted(_reads(problem))
        start = problem.space.batch([trial.design for trial in done])
        tags = keys(start, self._reads)
        self._measured = {tag: trial.metrics for tag, trial in zip(tags, done, strict=True)}
        self._seen: set[bytes] = set()
        self._batch = start.take(np.arange(0))
        self._losses: Floats = np.zeros((0, len(problem.objectives)))
        self._open: Mask = np.zeros(0, dtype=bool)
        self.lost = FailedDesigns()
        """Designs without a value among those evaluated."""
        self._enter(start)

    def step(self) -> bool:
        """Evaluate the neighbours of some archive members; return false once all are explored."""
        places = np.flatnonzero(self._open)[:_AT_ONCE]
        if not len(places):
            return False
        self._open[places] = False
        space = self._problem.space
        around = [space.neighbours(self._batch.design(int(place))) for place in places]
        around = [batch for batch in around if len(batch)]
        if around:
            self._enter(concatenate_batches(around))
        return True

    def designs(self) -> list[Design]:
        """Return the designs of the archive, or an evenly spaced :data:`MOST` of them."""
        return _thin_designs(self._batch, self._losses)

    def _enter(self, batch: Batch) -> None:
        """Add to the archive the new, non-dominated designs that can reuse a measurement."""
        batch = batch.take(self._fresh(batch))
        if not len(batch):
            return
        losses, fine = self._evaluate_known(batch)
        batch, losses = batch.take(fine), losses[fine]
        every = np.vstack([self._losses, losses])
        open_ = np.concatenate([self._open, np.ones(len(losses), dtype=bool)])
        best = nondominated(every)
        parts = [part for part in (self._batch, batch) if len(part)]
        if parts:
            self._batch = concatenate_batches(parts).take(best)
        self._losses, self._open = every[best], open_[best]

    def _fresh(self, batch: Batch) -> Mask:
        """Return a mask of the new designs that can reuse a measurement, (n,).

        These designs are marked as seen.
        """
        measured = [key in self._measured for key in keys(batch, self._reads)]
        fresh = np.array(measured, dtype=bool)
        for row, key in enumerate(keys(batch, sorted(batch.names))):
            if fresh[row]:
                fresh[row] = key not in self._seen
                self._seen.add(key)
        return fresh

    def _evaluate_known(self, batch: Batch) -> tuple[Floats, Mask]:
        """Return the losses of the designs, (n, m), and which designs satisfy every limit, (n,)."""
        problem, size = self._problem, len(batch)
        known = problem.known(batch)
        measured = [self._measured[key] for key in keys(batch, self._reads)]
        columns = {
            **batch.columns,
            **{name: Column(values) for name, values in known.columns.items()},
            **{name: _metric_column(measured, name) for name in problem.measured},
        }
        losses = problem.losses(columns, size)
        slacks = problem.slacks(columns, size)
        kept = (slacks >= 0).all(axis=1)
        fine: Mask = np.asarray(kept & np.isfinite(losses).all(axis=1))
        fine[list(known.failures)] = False
        undefined: Mask = np.asarray(
            ~np.isfinite(losses).all(axis=1) | np.isnan(slacks).any(axis=1)
        )
        undefined[list(known.failures)] = True
        self._lose(batch, undefined & ~impossible_rows(known, size))
        return losses, fine

    def _lose(self, batch: Batch, lost: Mask) -> None:
        """Count designs that have no value as failed; no design is evaluated twice."""
        rows = np.flatnonzero(lost)
        if len(rows):
            example = self.lost.example or batch.design(int(rows[0]))
            failed = self.lost.failed + len(rows)
            self.lost = FailedDesigns(failed=failed, example=example, at_least=True)


def _reads(problem: Problem) -> frozenset[str]:
    """Return the names of the parameters and metrics that any measured evaluator reads.

    All measured evaluators run for a design, even if no objective or limit reads their metrics.
    """
    measured = (s.reads for s in problem.sources.values() if s.kind == "measured")
    return frozenset[str]().union(*measured)


def _metric_column(metrics: Sequence[Mapping[str, float]], name: str) -> Column:
    return Column(np.array([one[name] for one in metrics]))
