"""Totals of a course of caps and brakes: power, energy, time and slowness."""

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
    """Of one design; shares are of the limit, of time, and of what servers would take uncapped."""

    peak: float
    idle_power: float
    low_power: float
    high_power: float
    """Means over time, the two above idle."""
    brakes: int
    braked: float
    low_capped: float
    high_capped: float
    low_slowdown: float
    high_slowdown: float
    level: int
    """The strongest cap that was needed; one more than the last of :data:`LEVELS`: the brake."""


def outcome(
    course: GovernorTrace,
    rows: tuple[ServerRow, ...],
    braked: ServerRow,
    load: LoadTrace,
    brake_steps: int,
) -> Outcome:
    """Return a course's totals, braked for ``brake_steps`` after each step that caused it.

    A class that is capped does its work by its slowness later; slowdowns are means over the work.
    That of braked steps is not among them: ``braked`` tells how long they were.
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
    """The level of each step; the one that causes a brake is drawn in full."""
    held = np.repeat(np.array(course.levels, dtype=np.int8), np.diff(course.ends, prepend=0))
    if course.brakes:
        after = np.arange(1, brake_steps + 1)
        stopped = np.add.outer(np.array(course.brakes), after).ravel()
        held[stopped[stopped < steps]] = braked
    return held


def _above_idle(one: Class, busy: Floats) -> float:
    """Return a class's power above idle, summed over these steps, in a row of one server."""
    return one.share * (one.busy - one.idle) * float(np.minimum(1.0, busy * one.slowness).sum())
