"""Missions of a quadrotor, a point mass in a plane, past random obstacles; many at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dse.core.values import Floats, Ints

STAGES = ("perception", "planning", "control")
"""Stages of the pipeline, in whose state a bit flips."""

OBSTACLES: Final = 10
GOAL_M: Final = 60.0
BODY_M: Final = 0.3
SPEED_M_S: Final = 4.0
ACCELERATION_M_S2: Final = 8.0
STEP_S: Final = 0.1
REFRESH: Final = 20  # steps for which a map and a waypoint are used
LONGEST: Final = 400  # steps
AHEAD_M: Final = 12.0
_NOISE_M = 0.05
_ANGLES = np.linspace(-1.2, 1.2, 13)

Monitor = Callable[[str, Floats], NDArray[np.bool_]]
"""Function from a stage and its state vectors, (n, words), to the missions with an alarm, (n,)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Flip:
    """Bit flip of each of n missions: the stage, the step, the word, and the bit's mask, (n,)."""

    stage: str
    steps: Ints
    words: Ints
    masks: NDArray[np.uint32]


@dataclass(frozen=True, slots=True, kw_only=True)
class Flights:
    """Results of n simulated quadrotor missions.

    Attributes:
        reached: whether the goal was reached without a collision, (n,).
        time_s: flight times, (n,).
        alarms: number of alarms, (n,).
        updates: number of states that were monitored, (n,).
        seen: state vectors by stage, each (updates, words), of all missions.
    """

    reached: NDArray[np.bool_]
    time_s: Floats
    alarms: Ints
    updates: Ints
    seen: dict[str, Floats]


def fly(seed: int, count: int, fault: Flip | None, monitor: Monitor | None) -> Flights:
    """Simulate quadrotor missions; a stage with an alarm computes its state again.

    Args:
        seed: seed of the obstacles and of the noise of their map.
        count: number of missions.
        fault: the flips; ``None`` for none.
        monitor: the detector; ``None`` for none.
    """
    return _Simulation(seed, count, fault, monitor).run()


class _Simulation:
    """State of n missions, advanced together."""

    def __init__(self, seed: int, count: int, fault: Flip | None, monitor: Monitor | None) -> None:
        self._rng = np.random.default_rng(seed)
        self._fault, self._monitor = fault, monitor
        low, high = [10.0, -6.0, 0.5], [50.0, 6.0, 1.5]
        self._obstacles = self._rng.uniform(low, high, size=(count, OBSTACLES, 3))
        self._place, self._speed = np.zeros((count, 2)), np.zeros((count, 2))
        self._map = self._obstacles.astype(np.float32)
        self._waypoint = np.zeros((count, 2), dtype=np.float32)
        self._flying = np.ones(count, dtype=np.bool_)
        self._reached = np.zeros(count, dtype=np.bool_)
        self._time = np.full(count, LONGEST * STEP_S)
        self._alarms = np.zeros(count, dtype=np.int64)
        self._updates = np.zeros(count, dtype=np.int64)
        self._seen: dict[str, list[Floats]] = {stage: [] for stage in STAGES}

    def run(self) -> Flights:
        with np.errstate(all="ignore"):
            for step in range(LONGEST):
                if not self._flying.any():
                    break
                self._advance(step)
        seen = {stage: np.concatenate(rows) for stage, rows in self._seen.items() if rows}
        return Flights(
            reached=self._reached,
            time_s=self._time,
            alarms=self._alarms,
            updates=self._updates,
            seen=seen,
        )

    def _advance(self, step: int) -> None:
        if step % REFRESH == 0:
            self._map = self._perceive(step)
            self._waypoint = self._plan(step)
        else:
            self._map = self._flip(
                "perception", step, self._map.reshape(len(self._map), -1)
            ).reshape(self._map.shape)
            self._waypoint = self._flip("planning", step, self._waypoint)
        self._move(self._control(step))
        self._judge(step)

    def _perceive(self, step: int) -> NDArray[np.float32]:
        noise = self._rng.normal(scale=_NOISE_M, size=self._obstacles.shape)
        found = (self._obstacles + noise).astype(np.float32)
        table = found.reshape(len(found), -1)
        faulty = self._flip("perception", step, table)
        known = self._obstacles.reshape(len(found), -1)  # what the map held before
        return self._watch("perception", faulty, table, faulty - known).reshape(found.shape)

    def _plan(self, step: int) -> NDArray[np.float32]:
        """Return the waypoint with the least cost: distance to the goal, and near obstacles."""
        rays = np.stack([np.cos(_ANGLES), np.sin(_ANGLES)], axis=1)  # (angles, 2)
        aims = self._place[:, None] + AHEAD_M * rays
        relative = self._map[:, None, :, :2] - self._place[:, None, None]  # (n, 1, obstacles, 2)
        along = np.clip((relative * rays[None, :, None]).sum(axis=3), 0, AHEAD_M)
        nearest = relative - along[..., None] * rays[None, :, None]
        gap = np.sqrt((nearest**2).sum(axis=3)) - self._map[:, None, :, 2]
        clear = np.nan_to_num(gap.min(axis=2), nan=-1.0)  # (n, angles)
        goal = np.abs(aims - [GOAL_M, 0.0]).sum(axis=2)
        cost = goal + 100 * np.clip(2 * BODY_M + 0.8 - clear, 0, None)
        chosen = cost.argmin(axis=1)
        wanted = aims[np.arange(len(aims)), chosen].astype(np.float32)
        faulty = self._flip("planning", step, wanted)
        seen = np.concatenate([faulty - self._place, self._speed], axis=1)
        return self._watch("planning", faulty, wanted, seen)

    def _control(self, step: int) -> NDArray[np.float32]:
        """Return the wanted velocity; a velocity that is not finite becomes zero."""
        aim = self._waypoint - self._place
        length = np.maximum(np.sqrt((aim**2).sum(axis=1, keepdims=True)), 1e-6)
        wanted = np.nan_to_num(SPEED_M_S * aim / length, nan=0.0).astype(np.float32)
        faulty = self._flip("control", step, wanted)
        seen = np.concatenate([faulty, aim / AHEAD_M], axis=1)
        return np.nan_to_num(self._watch("control", faulty, wanted, seen), posinf=0, neginf=0)

    def _move(self, wanted: NDArray[np.float32]) -> None:
        change = wanted - self._speed
        size = np.maximum(np.sqrt((change**2).sum(axis=1, keepdims=True)), 1e-9)
        most = ACCELERATION_M_S2 * STEP_S
        self._speed = self._speed + change / size * np.minimum(size, most)
        self._place = self._place + self._speed * STEP_S * self._flying[:, None]

    def _judge(self, step: int) -> None:
        away = np.sqrt(((self._obstacles[..., :2] - self._place[:, None]) ** 2).sum(axis=2))
        hit = (away < self._obstacles[..., 2] + BODY_M).any(axis=1)
        there = (self._place[:, 0] >= GOAL_M) & ~hit
        ended = self._flying & (hit | there)
        self._reached |= self._flying & there
        self._time[ended] = (step + 1) * STEP_S
        self._flying &= ~ended

    def _flip(self, stage: str, step: int, words: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the computed values (words) of a stage, with the bit flips of this step."""
        fault = self._fault
        if fault is None or fault.stage != stage:
            return words
        rows = np.flatnonzero(fault.steps == step)
        if not len(rows):
            return words
        changed = np.ascontiguousarray(words).copy()
        changed.view(np.uint32)[rows, fault.words[rows]] ^= fault.masks[rows]
        return changed

    def _watch(
        self,
        stage: str,
        faulty: NDArray[np.float32],
        again: NDArray[np.float32],
        seen: Floats,
    ) -> NDArray[np.float32]:
        """Return the values (words) of a stage, recomputed for the missions with an alarm.

        ``again`` are the recomputed values. Without a monitor, no alarm is raised.
        """
        if self._monitor is None:
            self._seen[stage].append(seen[self._flying])
            return faulty
        alarm = self._monitor(stage, seen) & self._flying
        self._alarms += alarm
        self._updates += self._flying
        return np.where(alarm[:, None], again, faulty)
