"""Event-driven simulation of a policy that caps clocks above two power thresholds: its totals."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dse.core.values import Floats, Ints
from dse_evaluators.clusters.power.load import LoadTrace
from dse_evaluators.clusters.power.server_power import Class, ServerRow

LEVELS = ("free", "low", "lower", "both")
"""No cap; low priority capped; low priority capped further; high priority capped as well."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """Power capping policy: thresholds as fractions of the power limit, durations in time steps.

    Without ``governed`` no clock is capped; only the brake (lowest clock for all servers) acts when
    power exceeds the limit.
    """

    governed: bool
    first: float
    second: float
    hysteresis: float
    latency_steps: int
    brake_steps: int
    most_brakes: int


@dataclass(frozen=True, slots=True)
class GovernorTrace:
    """History of a simulation: successive capping levels, and the time steps that caused a brake.

    ``ends`` holds the first time step after each level. A simulation stops after ``most_brakes``
    brakes; its last level then ends before the load trace does.
    """

    levels: tuple[int, ...]
    ends: tuple[int, ...]
    brakes: tuple[int, ...]


class Governor:
    """Simulation of a power capping policy on the time series of a load.

    A change of the clock caps takes effect ``latency_steps`` after its cause, and no other change
    is decided until then. The brake takes effect immediately and lasts for ``brake_steps``.

    Source:
        Patel et al.: Characterizing Power Management Opportunities for LLMs in the Cloud (POLCA),
        ASPLOS 2024, by notes on it; the precedence when two thresholds are passed at once is an
        assumption of this model.
    """

    def __init__(self, policy: Policy, rows: tuple[ServerRow, ...], load: LoadTrace) -> None:
        """Prepare a simulation; ``rows`` describes the servers' power at each of :data:`LEVELS`."""
        first, second, slack = policy.first, policy.second, policy.hysteresis
        never = float("inf")
        rises = (first, second, second, never) if policy.governed else (never,) * 4
        falls = (-never, first - slack, second - slack, second - slack)
        self._bands = [
            (row.load_at(fall), row.load_at(rise))
            for row, fall, rise in zip(rows, falls, rises, strict=True)
        ]
        self._limits = [row.load_at(1.0) for row in rows]
        self._next = dict[int, Ints]()
        self._over = dict[int, list[int]]()
        self._jump = rows[0].load_at(second)
        self._policy = policy
        self._load = load

    def course(self) -> GovernorTrace:
        """Simulate the complete load trace; return the capping levels and the brakes."""
        end = len(self._load)
        levels, ends, brakes = list[int](), list[int](), list[int]()
        level = step = 0
        while step < end and len(brakes) < self._policy.most_brakes:
            cause = int(self._causes(level)[step])
            effect = min(cause + self._policy.latency_steps, end)
            released = self._brake(brakes, level, step, effect) if self._over[level] else 0
            step = min(max(step + 1, released, effect), end)
            levels.append(level)
            ends.append(step)
            if cause < end:
                level = self._target(level, cause)
        return GovernorTrace(tuple(levels), tuple(ends), tuple(brakes))

    def _causes(self, level: int) -> Ints:
        """Return, for each time step, the next step whose load requires another capping level.

        The result depends on the present ``level``, and is cached for each.
        """
        if level not in self._next:
            self._next[level] = self._load.next_outside(*self._bands[level])
            self._over[level] = self._load.above(self._limits[level])
        return self._next[level]

    def _target(self, level: int, cause: int) -> int:
        busy = float(self._load.busy[cause])
        if busy > self._bands[level][1]:
            return 2 if level == 0 and busy > self._jump else level + 1
        return 1 if level > 1 else 0

    def _brake(self, brakes: list[int], level: int, step: int, until: int) -> int:
        """Append the brakes between two time steps, and return when the last one is released."""
        over = self._over[level]
        at = bisect_left(over, step)
        while at < len(over) and over[at] < until and len(brakes) < self._policy.most_brakes:
            brakes.append(over[at])
            step = over[at] + 1 + self._policy.brake_steps
            at = bisect_left(over, step, at)
        return step


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """Totals of a power simulation: power relative to the limit, shares of time, slowdowns.

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
    """Return the totals of a power simulation, given its capping levels and brakes.

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
