"""Snapshot of a study at one moment, and its update from the storage."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from threading import Lock
from typing import Any

from dse.core.pareto import ParetoSet
from dse.core.proof import Proof
from dse.core.trial import Driver, Event
from dse.core.trials import Trials
from dse.protocols import Storage
from dse.report.figures.growth import growth_figures
from dse.report.figures.pairs import trade_off_figures
from dse.report.figures.style import Drawing
from dse.report.figures.timeline_figure import timeline_figure
from dse.report.html.failure_reasons import FailureReason, list_failure_reasons
from dse.report.json.gap_json import known_gap
from dse.serve.error_responses import UnknownError
from dse.study.claimed_trials import LEASE_S
from dse.study.liveness import gone
from dse.study.stopping_bounds import RemainingBudget
from dse.study.study_engine import StudyEngine

MOST_PAIRS = 3
"""Maximum number of trade-off figures; the report has more."""


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """Contents of a study's record at one moment, with data derived from them on demand.

    ``changed_at`` is the monotonic time at which the record was last seen to grow; ``None`` if
    never. ``there`` are the drivers (processes that run the study) that appear to be alive.
    """

    spec: Mapping[str, Any]
    study: StudyEngine
    trials: Trials
    events: Sequence[Event]
    there: Sequence[Driver]
    changed_at: float | None

    @cached_property
    def finished(self) -> Trials:
        """Finished trials of the study, in the order of its record."""
        return self.trials.finished

    @cached_property
    def front(self) -> ParetoSet:
        """Pareto front of the finished feasible trials."""
        return ParetoSet.of(self.study.problem, self.finished)

    @cached_property
    def failure_reasons(self) -> list[FailureReason]:
        """Reasons why trials failed or are infeasible, each with its trials."""
        return list_failure_reasons(self.study.problem, self.finished)

    @cached_property
    def drawings(self) -> list[Drawing]:
        """Figures: trade-offs of the first objectives, hypervolume growth, worker timeline."""
        gap = known_gap(self.proof, self.events)
        pairs = trade_off_figures(self.front, self.finished, gap=gap)[:MOST_PAIRS]
        lanes = timeline_figure(self.trials, measured=bool(self.study.problem.measured))
        return [*pairs, *growth_figures(self.front, self.finished)[:1], *lanes]

    @cached_property
    def measured(self) -> int:
        """Number of trials that used measurements, as counted by the budget."""
        return int(self.study.problem.measurements(self.trials).sum())

    @cached_property
    def proof(self) -> Proof:
        """Proof of the front: whether it is exact, over how many designs, and how many failed."""
        return Proof.of_study(self.study.problem, self.finished, self.events)

    @cached_property
    def exhausted(self) -> bool:
        """Whether every legal design has become a trial, so that no budget allows another one."""
        count = self.study.problem.space.count()
        if count is None or len(self.trials) < count:
            return False
        return len({trial.design for trial in self.trials}) >= count

    @cached_property
    def room(self) -> RemainingBudget:
        """Number of trials that the study's budget still allows; if it is 0, also the reason."""
        bounds, over = self.study.bounds(), self.trials.over
        spent_s = float(self.trials.cost_s[over].sum())
        if bounds.time_s is not None and spent_s >= bounds.time_s:
            return RemainingBudget(0, "the time is used up")
        return bounds.room(
            asked=len(self.trials),
            measured=self.measured,
            under_way=int((~over).sum()),
            spent_s=spent_s,
        )

    @property
    def mark(self) -> str:
        """String that changes whenever the study's trials, events or drivers change."""
        there = ",".join(str(driver.id) for driver in self.there)
        return f"{len(self.finished)}.{len(self.trials)}.{len(self.events)}.{there}"


def load_snapshot(
    name: str, storage: Storage, presence: Presence, before: Snapshot | None
) -> Snapshot:
    """Return a snapshot of the study's present record.

    It is the earlier snapshot ``before`` itself if nothing has changed.

    Raises:
        UnknownError: no study has that name.
        StudyError: its record is not valid.
        StorageError: it cannot be read.
    """
    spec = storage.spec(name)
    if spec is None:
        raise UnknownError(f"there is no study {name[:80]!r}")
    if before is not None and (before.spec != spec or before.study.storage is not storage):
        before = None  # the study was begun anew, or the file was replaced
    events = storage.events(name)
    there = presence.there(name, storage.drivers(name))
    if before is not None and _same(before, events, there, storage, name):
        return before
    trials = storage.trials(name)
    kept = before is not None and not before.study.plan.awaited
    new = Snapshot(
        spec=spec,
        study=before.study if before is not None and kept else StudyEngine.load(name, storage),
        trials=trials,
        events=events,
        there=there,
        changed_at=_changed_at(before, trials),
    )
    _ = new.front  # computed here, once for all readers
    return new


def _changed_at(before: Snapshot | None, trials: Trials) -> float | None:
    if before is None:
        return None
    counts = len(before.finished), len(before.trials)
    return before.changed_at if counts == (trials.over.sum(), len(trials)) else time.monotonic()


def _same(
    before: Snapshot,
    events: Sequence[Event],
    there: Sequence[Driver],
    storage: Storage,
    name: str,
) -> bool:
    if len(events) != len(before.events) or [d.id for d in there] != [d.id for d in before.there]:
        return False
    return not _grown(before, storage, name)


def _grown(before: Snapshot, storage: Storage, name: str) -> bool:
    """Return whether a record has new trials, or its study was deleted and started anew."""
    finished, asked = len(before.finished), len(before.trials)
    news = storage.since(name, max(finished - 1, 0), max(asked - 1, 0))
    counted = (len(news.finished), len(news.added)) == (min(finished, 1), min(asked, 1))
    return not counted or [*news.finished] != [*before.finished[-1:]]


class Presence:
    """Monitor that finds lost drivers by their heartbeat counters.

    A driver counts as alive if its counter has risen recently by this process's own clock.
    """

    def __init__(self) -> None:
        self._seen: dict[tuple[str, int], tuple[int, float]] = {}
        self._lock = Lock()

    def there(self, study: str, drivers: Sequence[Driver]) -> list[Driver]:
        """Return the drivers that have not signed off and whose heartbeat has risen recently."""
        now = time.monotonic()
        return [one for one in drivers if not one.left and self._beats(study, one, now)]

    def _beats(self, study: str, driver: Driver, now: float) -> bool:
        if gone(driver):
            return False
        with self._lock:
            beat, since = self._seen.get((study, driver.id), (-1, now))
            if beat != driver.beat:
                since = now
            self._seen[study, driver.id] = driver.beat, since
        return now - since < LEASE_S
