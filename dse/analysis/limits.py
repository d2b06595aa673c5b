"""Limits that bind: the designs that each rules out, and the best if it were looser."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dse.core.problem import Problem
from dse.core.ties import is_tie
from dse.core.trial import State, Trial
from dse.core.trials import Trials
from dse.core.values import Floats, Mask

LOOSER = 0.1
"""How much a limit is loosened, as a share of its bound."""

NEAR = 0.02
"""A design this near to a limit, as a share of its bound, is at it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Buys:
    """Improvement of an objective's best value if a limit gives way, with its trial."""

    objective: int
    now: float
    then: float
    trial: Trial


@dataclass(frozen=True, slots=True, kw_only=True)
class Activity:
    """One limit over the trials that are done.

    ``broken`` break it, ``alone`` of those break no other; ``near`` keep all limits and are at it.
    ``looser`` is what a bound looser by :data:`LOOSER` buys, ``without`` what no bound does.
    """

    text: str
    broken: int
    alone: int
    near: int
    done: int
    looser: tuple[Buys, ...]
    without: tuple[Buys, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Judged:
    """Trials that are done with numbers for all that is asked."""

    problem: Problem
    trials: Trials
    losses: Floats  # (n, m)
    slacks: Floats  # (n, l)

    @property
    def kept(self) -> Mask:
        """Those within all limits, (n,)."""
        return _all(self.slacks >= 0)

    def buys(self, wider: Mask) -> tuple[Buys, ...]:
        """The objectives whose best value improves where ``wider`` are allowed."""
        if not self.kept.any():
            return ()
        found = []
        for place, objective in enumerate(self.problem.objectives):
            sign = 1.0 if objective.goal == "minimize" else -1.0
            now = float(self.losses[self.kept, place].min())
            row = int(np.argmin(np.where(wider, self.losses[:, place], np.inf)))
            then = float(self.losses[row, place])
            if then < now and not is_tie(then, now):
                trial = self.trials[row]
                found.append(Buys(objective=place, now=sign * now, then=sign * then, trial=trial))
        return tuple(found)


def activities(problem: Problem, trials: Sequence[Trial]) -> list[Activity]:
    """Return one activity for each limit; gains count only designs that were tried."""
    done = Trials.of(trials)
    done = done.take(done.are(State.DONE))
    if not len(done):
        return []
    columns = problem.columns(done)
    losses, slacks = problem.losses(columns, len(done)), problem.slacks(columns, len(done))
    fine = _all(np.isfinite(np.hstack([losses, slacks])))
    judged = _Judged(
        problem=problem, trials=done.take(fine), losses=losses[fine], slacks=slacks[fine]
    )
    return [_activity(judged, place) for place in range(len(problem.limits))]


def _activity(judged: _Judged, place: int) -> Activity:
    limit, slack = judged.problem.limits[place], judged.slacks[:, place]
    others = _all(np.delete(judged.slacks, place, axis=1) >= 0)
    bounded = limit.scale != 1.0  # else its slack is no share of anything
    return Activity(
        text=limit.text,
        broken=int((slack < 0).sum()),
        alone=int(((slack < 0) & others).sum()),
        near=int((judged.kept & (slack <= NEAR)).sum()) if bounded else 0,
        done=len(slack),
        looser=judged.buys(others & (slack >= -LOOSER)) if bounded else (),
        without=judged.buys(others),
    )


def _all(rows: Mask) -> Mask:
    return np.asarray(rows.all(axis=1))
