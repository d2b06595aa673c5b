"""Completion of the front, without measurements, by designs that share a measured part.

A measured metric depends on some parameters only. All designs that agree in them with a measured
one have known metrics, exactly and without a measurement. Of each measured part the staircase is
taken: exact where its designs can be listed. Where objectives mix what is measured with what is
not, it is Pareto local search (L. Paquete, M. Chiarandini, T. Stuetzle: Pareto Local Optimum Sets
in the Biobjective Traveling Salesman Problem, 2004): legal neighbours of every member of the front
are tried until none improves it; a local optimum, and not claimed to be more.
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
from dse.optimizers.bayesian.conditional_fronts import ConditionalFronts, Lost
from dse.optimizers.bayesian.measured_split import MeasuredSplit
from dse.optimizers.bayesian.shared_parts import firsts, keys
from dse.optimizers.exact.chunks import impossible_rows

MOST = 500
"""At most so many designs are added; of more, the evenly spaced ones along the first objective."""

_AT_ONCE = 64
_ROUNDS = 200


class Completion:
    """Asks the designs that complete the front without a measurement, and then nothing.

    It looks only at the first trial of each reading, so that a completion that was cut short goes
    on as it would have. What another driver measures meanwhile is completed too.
    """

    batch = 64

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._told: list[Trial] = []
        self._readings = 0
        self._front: list[Design] | None = None
        self._events: list[Event] = []

    def ask(self, count: int, pending: Sequence[Design] = ()) -> list[Design]:
        if self._front is None:
            self._begin()
        known = {trial.design for trial in self._told}.union(pending)
        return [design for design in self._front or () if design not in known][:count]

    def tell(self, finished: Sequence[Trial]) -> None:
        self._told += finished
        if self._front is not None and len(_firsts(self._problem, self._told)) > self._readings:
            self._front = None

    def events(self) -> list[Event]:
        drained, self._events = self._events, []
        return drained

    def _begin(self) -> None:
        measured = _firsts(self._problem, self._told)
        self._readings = len(measured)
        self._front, lost = completion_of(self._problem, measured)
        measurements = int(self._problem.measurements(self._told).sum())
        text = (
            f"{len(self._front)} designs share what {measurements} measurements told and complete "
            f"the front; they cost none{lost_words(self._problem, lost)}"
        )
        self._events.append(Event(kind=COMPLETED, text=text, told=len(self._told)))


def lost_words(problem: Problem, lost: Lost) -> str:
    """Describe the number of designs without a value that share a measurement, with an example.

    Returns an empty text where there are none.
    """
    if not lost.failed or lost.example is None:
        return ""
    least = "at least " if lost.at_least else ""
    one = design_failure_text(problem, lost.example)
    return f"; {least}{lost.failed:,} designs that share them failed, such as {one}"


def _firsts(problem: Problem, trials: Sequence[Trial]) -> list[Trial]:
    """The first trial of each reading: most cost a measurement, those of other studies did not."""
    reads = _reads(problem)
    found: dict[str, Trial] = {}
    for trial in trials:
        if trial.state is State.DONE:
            read = {name: trial.design[name] for name in reads if name in trial.design}
            found.setdefault(key_of(read), trial)
    return list(found.values())


def worthwhile(problem: Problem) -> bool:
    """True if a design can share all measured metrics with another and still differ from it."""
    reads = _reads(problem)
    modelled = problem.asked - problem.measured
    return bool(problem.measured and modelled) and any(
        name not in reads for name in problem.space.by_name
    )


def complete_front(problem: Problem, trials: Sequence[Trial]) -> list[Design]:
    """Return the front over all designs that share what these trials measured."""
    return completion_of(problem, trials)[0]


def completion_of(problem: Problem, trials: Sequence[Trial]) -> tuple[list[Design], Lost]:
    """The front over all designs that share what these trials measured, and which have no value.

    Each measured part's own best designs come from its staircase: all of them looked at where they
    can be listed, else searched. Where an objective or a limit joins a measurement with what
    depends on more, there is no such staircase, and local search takes its place.
    """
    done = [trial for trial in trials if trial.state is State.DONE]
    if not done:
        return [], Lost()
    if MeasuredSplit(problem=problem).part == _reads(problem):
        stairs = ConditionalFronts(problem, MeasuredSplit(problem=problem))
        return _thin_designs(*completed_front(problem, done, stairs)), stairs.lost()
    search = _Search(problem, done)
    for _ in range(_ROUNDS):
        if not search.step():
            break
    return search.designs(), search.lost


def completed_front(
    problem: Problem, trials: Sequence[Trial], stairs: ConditionalFronts
) -> tuple[Batch, Floats]:
    """The designs that share what was measured and that no other of them beats; their losses.

    Args:
        problem: one whose objectives and limits are each measured or modelled, and not both.
        trials: those that are not done teach nothing.
        stairs: keeps what it looked up, so that asking again after a measurement is cheap.
    """
    roles = MeasuredSplit(problem=problem)
    done = [trial for trial in trials if trial.state is State.DONE]
    batch, columns = problem.space.batch([t.design for t in done]), problem.columns(done)
    learnt = problem.losses(columns, len(done))[:, list(roles.learnt)]
    kept = np.isfinite(learnt).all(axis=1)
    for limit in roles.learnt_limits:
        kept &= limit.slacks(columns, len(done)) >= 0
    rows = np.flatnonzero(kept)
    rows = rows[firsts(keys(batch.take(rows), sorted(roles.part)))]
    found = stairs.wholes(batch.take(rows))
    losses = np.zeros((sum(len(own.losses) for own in found), len(problem.objectives)))
    if not len(losses):
        return batch.take(np.arange(0)), losses
    losses[:, list(roles.learnt)] = learnt[np.repeat(rows, [len(own.losses) for own in found])]
    losses[:, list(roles.known)] = np.vstack([own.losses for own in found])
    best = np.flatnonzero(nondominated(losses))
    return concatenate_batches([own.designs for own in found]).take(best), losses[best]


def _thin_designs(batch: Batch, losses: Floats) -> list[Design]:
    """Return the designs in the order of their losses, evenly thinned if very many."""
    order = np.lexsort(losses.T[::-1]) if len(losses) else np.zeros(0, dtype=int)
    if len(order) > MOST:
        order = order[np.linspace(0, len(order) - 1, MOST).round().astype(int)]
    return [batch.design(int(place)) for place in order]


class _Search:
    """The archive of Pareto local search: designs, their losses, and which were looked around."""

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
        self.lost = Lost()
        """What has no value among the designs that were looked at."""
        self._enter(start)

    def step(self) -> bool:
        """Look around some members of the front; false once all were."""
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
        """The archive."""
        return _thin_designs(self._batch, self._losses)

    def _enter(self, batch: Batch) -> None:
        """Take those of the designs into the archive that are measured, new and not beaten."""
        batch = batch.take(self._fresh(batch))
        if not len(batch):
            return
        losses, fine = self._judged(batch)
        batch, losses = batch.take(fine), losses[fine]
        every = np.vstack([self._losses, losses])
        open_ = np.concatenate([self._open, np.ones(len(losses), dtype=bool)])
        best = nondominated(every)
        parts = [part for part in (self._batch, batch) if len(part)]
        if parts:
            self._batch = concatenate_batches(parts).take(best)
        self._losses, self._open = every[best], open_[best]

    def _fresh(self, batch: Batch) -> Mask:
        """Mask unseen designs whose measured part was measured, (n,); mark them as seen."""
        measured = [key in self._measured for key in keys(batch, self._reads)]
        fresh = np.array(measured, dtype=bool)
        for row, key in enumerate(keys(batch, sorted(batch.names))):
            if fresh[row]:
                fresh[row] = key not in self._seen
                self._seen.add(key)
        return fresh

    def _judged(self, batch: Batch) -> tuple[Floats, Mask]:
        """Return the losses of the designs, (n, m), and a mask of those that keep every limit."""
        problem, size = self._problem, len(batch)
        known = problem.known(batch)
        told = [self._measured[key] for key in keys(batch, self._reads)]
        columns = {
            **batch.columns,
            **{name: Column(values) for name, values in known.columns.items()},
            **{name: _metric_column(told, name) for name in problem.measured},
        }
        losses = problem.losses(columns, size)
        slacks = problem.slacks(columns, size)
        kept = (slacks >= 0).all(axis=1)
        fine: Mask = np.asarray(kept & np.isfinite(losses).all(axis=1))
        fine[list(known.faults)] = False
        undefined: Mask = np.asarray(
            ~np.isfinite(losses).all(axis=1) | np.isnan(slacks).any(axis=1)
        )
        undefined[list(known.faults)] = True
        self._lose(batch, undefined & ~impossible_rows(known, size))
        return losses, fine

    def _lose(self, batch: Batch, lost: Mask) -> None:
        """Count designs without a value; each is looked at once."""
        rows = np.flatnonzero(lost)
        if len(rows):
            example = self.lost.example or batch.design(int(rows[0]))
            failed = self.lost.failed + len(rows)
            self.lost = Lost(failed=failed, example=example, at_least=True)


def _reads(problem: Problem) -> frozenset[str]:
    """Return the names that any measured evaluator reads.

    All of them run for a design, asked for or not.
    """
    measured = (s.reads for s in problem.sources.values() if s.kind == "measured")
    return frozenset[str]().union(*measured)


def _metric_column(metrics: Sequence[Mapping[str, float]], name: str) -> Column:
    return Column(np.array([one[name] for one in metrics]))
