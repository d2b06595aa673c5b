"""The true front of a co-design problem: all designs compared, none left out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from codesign_readings import Reading, Study, digest

from dse.core.batch import Batch, Column
from dse.core.pareto import hypervolume, nondominated, reference
from dse.core.values import Floats, Ints, Mask

_ANSWER = ("space", "evaluators", "objectives", "constraints", "reference")
_FIELDS = ("losses", "parts", "reference", "designs", "feasible")


@dataclass(frozen=True, slots=True, kw_only=True)
class Truth:
    """The exact front as losses, and the measured setting behind each of its rows."""

    losses: Floats  # (n, m)
    parts: Ints  # (n,)
    reference: Floats  # (m,)
    designs: int
    feasible: int

    @property
    def hypervolume(self) -> float:
        """What the front dominates below the reference point."""
        return hypervolume(self.losses, self.reference)


def truth(study: Study, *, tell: bool = False) -> Truth:
    """The exact front, from the cache where it is there; else all is measured and compared."""
    identity = study.plan.identity
    name = f"{study.plan.name}-{digest({key: identity[key] for key in _ANSWER})}.npz"
    file = study.cache / name
    if not file.exists():
        study.complete(tell=tell)
        found = _compared(study)
        np.savez(file, **{name: np.asarray(getattr(found, name)) for name in _FIELDS})
    with np.load(file) as kept:
        arrays = {name: kept[name] for name in _FIELDS[:3]}
        return Truth(**arrays, designs=int(kept["designs"]), feasible=int(kept["feasible"]))


def _compared(study: Study) -> Truth:
    point = reference(study.plan.problem, [])
    assert point is not None, "the study file states a reference"
    losses, parts = [np.zeros((0, len(point)))], [np.zeros(0, dtype=np.int64)]
    designs = feasible = 0
    for rows, batch in study.parts.groups():
        designs += len(rows) * len(batch)
        for row, front, kept in _conditional_fronts(study, rows, batch):
            feasible += kept
            losses.append(front)
            parts.append(np.full(len(front), row))
    every = np.concatenate(losses)
    best = nondominated(every)
    return Truth(
        losses=every[best],
        parts=np.concatenate(parts)[best],
        reference=point,
        designs=designs,
        feasible=feasible,
    )


def _conditional_fronts(
    study: Study, rows: Ints, batch: Batch
) -> Iterator[tuple[int, Floats, int]]:
    """For each measured setting of a group its undominated losses, and how many are feasible.

    Designs of one measured setting share what is measured, so that one beats another only in what
    is modelled; and that is the same for all settings of the group.
    """
    check_separate(study)
    problem = study.plan.problem
    got = problem.known(batch)
    sound = np.ones(len(batch), dtype=bool)
    sound[list(got.failures)] = False
    modelled = batch.with_columns({n: Column(np.asarray(x)) for n, x in got.columns.items()})
    modelled = modelled.take(np.flatnonzero(sound))
    front, kept = modelled.take(np.zeros(0, dtype=np.int64)), 0
    for place, row in enumerate(rows.tolist()):
        reading = study.readings.get(study.parts.key(study.parts.measured.row(row)))
        if reading is None:
            return  # no design of the group is sound
        if place == 0:
            within = modelled.take(np.flatnonzero(_within(study, modelled, reading)))
            losses = problem.losses(_with(within, reading).columns, len(within))
            front, kept = within.take(np.flatnonzero(nondominated(losses))), len(within)
        told = _with(front, reading)
        good = (problem.slacks(told.columns, len(told)) >= 0).all(axis=1)
        yield row, problem.losses(told.columns, len(told))[good], kept * bool(good.any())


def _within(study: Study, batch: Batch, reading: Reading) -> Mask:
    """The rows within every limit on modelled metrics."""
    problem = study.plan.problem
    slacks = problem.slacks(_with(batch, reading).columns, len(batch))
    modelled = [not limit.slack.names & problem.measured for limit in problem.limits]
    return np.asarray((slacks[:, modelled] >= 0).all(axis=1))


def _with(batch: Batch, reading: Reading) -> Batch:
    told = {name: Column(np.full(len(batch), value)) for name, value in reading.items()}
    return batch.with_columns(told)


def check_separate(study: Study) -> None:
    """Nothing, if no objective and no limit reads both measured and other things.

    Raises:
        ValueError: one does; conditional fronts cannot be shared then.
    """
    problem = study.plan.problem
    for expression in (
        *(o.expression for o in problem.objectives),
        *(x.slack for x in problem.limits),
    ):
        if expression.names & problem.measured and expression.names - problem.measured:
            raise ValueError(f"{expression.text!r} mixes what is measured with what is modelled")
