"""Totals of a simulated run of caps and brakes: power, capped time and slowdown."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dse.core.values import Floats
from dse_evaluators.clusters.power.governor import LEVELS, GovernorTrace
from dse_evaluators.clusters.power.load import LoadTrace
from dse_evaluators.clusters.power.server import Class, ServerRow


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """Totals of one design: power relative to the limit, shares of time, and mean slowdowns.

    A slowdown is the increase of the time of work relative to that without caps.
    """

    peak: float
    idle_power: float
    low_power: float
    high_power: float
    """Mean over time, as are the two powers above; low and high are the power above idle."""
    brakes: int
    braked: float
    low_capped: float
    high_capped: float
    low_slowdown: float
    high_slowdown: float
    level: int
    """Index of the strongest cap in :data:`LEVELS`; ``len(LEVELS)`` is the brake."""


def outcome(
    course: GovernorTrace,
    rows: tuple[ServerRow, ...],
    braked: ServerRow,
    load: LoadTrace,
    brake_steps: int,
) -> Outcome:
    """Return the totals of a run, given its capping levels and brakes.

    The ``brake_steps`` steps after each step that causes a brake are braked. Work of a capped class
    of servers takes ``slowness`` times as long; slowdowns are means over the work outside of braked
    steps. ``braked`` is the braked share of the time.
    """
    held = _levels(course, len(load), brake_steps, braked=len(rows))
    ladder = (*rows, braked)
    every = [(row, load.busy[held == level]) for level, row in enumerate(ladder)]
    spans = [(row, busy) for row, busy in every if len(busy)]
    calm = [(row, float(busy.sum())) for row, busy in spans if row is not braked]
    work = max(sum(busy for _, busy in calm), 1e-300)
    steps, free = float(len(load)), rows[0]
    ends = np.diff(course.ends, prepend=0)
    return Outcome(
        peak=max(row.power(float(busy.max())) for row, busy in spans),
        idle_power=free.servers
        * (free.low.share * free.low.idle + free.high.share * free.high.idle),
        low_power=free.servers * sum(_above_idle(row.low, busy) for row, busy in spans) / steps,
        high_power=free.servers * sum(_above_idle(row.high, busy) for row, busy in spans) / steps,
        brakes=len(course.brakes),
        braked=float((held == len(rows)).sum()) / steps,
        low_capped=float(ends[np.array(course.levels) >= 1].sum()) / steps,
        high_capped=float(ends[np.array(course.levels) >= 3].sum()) / steps,
        low_slowdown=sum((row.low.slowness - 1.0) * busy for row, busy in calm) / work,
        high_slowdown=sum((row.high.slowness - 1.0) * busy for row, busy in calm) / work,
        level=len(LEVELS) if course.brakes else max(course.levels),
    )


def _levels(
    course: GovernorTrace, steps: int, brake_steps: int, *, braked: int
) -> NDArray[np.int8]:
    """Return the level of each step; the step that causes a brake is not braked itself."""
    held = np.repeat(np.array(course.levels, dtype=np.int8), np.diff(course.ends, prepend=0))
    if course.brakes:
        after = np.arange(1, brake_steps + 1)
        stopped = np.add.outer(np.array(course.brakes), after).ravel()
        held[stopped[stopped < steps]] = braked
    return held


def _above_idle(one: Class, busy: Floats) -> float:
    """Return a priority class's power above idle, summed over steps, per server of the row.

    The unit is the provisioned power of one server.
    """
    return one.share * (one.busy - one.idle) * float(np.minimum(1.0, busy * one.slowness).sum())
