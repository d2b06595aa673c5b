"""Bounds at which a study stops asking, shared by all its drivers."""

from __future__ import annotations

from dataclasses import dataclass, replace

ENOUGH = 1 << 30
"""More than anyone asks at once."""


@dataclass(frozen=True, slots=True)
class Room:
    """Number of trials that may still be asked, and the bound that is used up if none may.

    Trials under way below the number ``until`` may still make room, whoever runs them. Of those
    asked ahead, no more than ``affordable`` are paid for, going by what the finished ones took.
    """

    count: int
    reason: str = ""
    until: int = 0
    affordable: int = ENOUGH


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """Bounds at which a study stops asking; ``None`` is no bound.

    All drivers of a study count together.

    ``cost`` is in dollars, at ``price_per_s`` for each second of evaluation; ``gain`` is the share
    of the hypervolume that a suggestion has to promise.
    """

    measurements: int | None = None
    trials: int | None = None
    time_s: float | None = None
    cost: float | None = None
    price_per_s: float | None = None
    gain: float | None = None

    def room(
        self, *, asked: int, measured: int, under_way: int, spent_s: float, finished: int = 0
    ) -> Room:
        """Return the trials that the bounds still allow.

        Args:
            asked: trials of the study.
            measured: finished trials that cost a measurement.
            under_way: trials that are not finished, each of which may cost one.
            spent_s: seconds of evaluation so far.
            finished: finished trials, all of them.
        """
        room = Room(ENOUGH)
        if self.trials is not None:
            room = Room(self.trials - asked, f"{self.trials} trials are done", self.trials)
        if self.measurements is not None:
            unused = self.measurements - measured - under_way
            if unused < room.count:
                until = asked if measured < self.measurements else 0
                room = Room(unused, f"{self.measurements} measurements are done", until)
        if self.cost is not None and spent_s * (self.price_per_s or 0.0) >= self.cost:
            room = Room(0, f"{self.cost:g} $ are spent")
        if self.cost is not None and self.price_per_s:
            each_s = spent_s / finished if finished else 0.0
            left_s = self.cost / self.price_per_s - spent_s
            affordable = int(left_s / each_s) - under_way if each_s > 0.0 else 0
            room = replace(room, affordable=max(0, affordable))
        return room
