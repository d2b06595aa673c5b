"""Analysis of limits on metrics: the trials that each limit rejects, the gain of relaxing it."""

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
"""Amount by which a limit is relaxed, as a share of its bound."""

NEAR = 0.02
"""Distance, as a share of the bound, up to which a design counts as being at a limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitRelaxation:
    """Improvement of an objective's best value, from ``now`` to ``then``, by relaxing a limit.

    ``trial`` is the trial that becomes feasible and attains the new best value.
    """

    objective: int
    now: float
    then: float
    trial: Trial


@dataclass(frozen=True, slots=True, kw_only=True)
class Activity:
    """Effect of one limit on the finished trials of a study.

    ``done`` is the number of finished trials. ``broken`` is the number of trials that violate the
    limit, ``alone`` the number of those that violate no other limit. ``near`` is the number of
    feasible trials whose distance from violating it, relative to the bound, is at most
    :data:`NEAR`. ``looser`` lists the improvements of objectives if the bound is relaxed by
    :data:`LOOSER`, ``without`` the improvements if the limit is removed.
    """

    text: str
    broken: int
    alone: int
    near: int
    done: int
    looser: tuple[LimitRelaxation, ...]
    without: tuple[LimitRelaxation, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Judged:
    """Finished trials whose objectives and limits are all finite, with losses and limit slacks."""

    problem: Problem
    trials: Trials
    losses: Floats  # (n, m)
    slacks: Floats  # (n, l)

    @property
    def kept(self) -> Mask:
        """Mask of the trials within all limits, (n,)."""
        return _all(self.slacks >= 0)

    def buys(self, wider: Mask) -> tuple[LimitRelaxation, ...]:
        """Return the gain in each objective's best value if the trials ``wider`` are feasible."""
        if not self.kept.any():
            return ()
        found = []
        for place, objective in enumerate(self.problem.objectives):
            sign = objective.sign
            now = float(self.losses[self.kept, place].min())
            row = int(np.argmin(np.where(wider, self.losses[:, place], np.inf)))
            then = float(self.losses[row, place])
            if then < now and not is_tie(then, now):
                trial = self.trials[row]
                found.append(
                    LimitRelaxation(objective=place, now=sign * now, then=sign * then, trial=trial)
                )
        return tuple(found)


def activities(problem: Problem, trials: Sequence[Trial]) -> list[Activity]:
    """Return the effect of each limit on the finished trials, and the gain if it is relaxed.

    The gain is read from the evaluated trials; no new design is evaluated.
    """
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
    bounded = limit.scale != 1.0  # else its slack is not a share of the bound
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
