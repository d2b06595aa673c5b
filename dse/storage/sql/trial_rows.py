"""Trials as rows of their table, each with a checksum over all of its columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple
from zlib import crc32

from dse.core.trial import Outcome, State, Trial
from dse.core.trials import TIMES
from dse.storage.sql.codec import build_damage_error, canonical, fault_text, numbers_text

Row = Sequence[Any]
"""What the database gives for one row: its types are those of the columns asked for."""

ASKED = ("number", "design", "told")
ENDED = (
    "state",
    "metrics",
    "spread",
    "fault",
    "cost_s",
    "measured",
    "attempts",
    "worker",
    "finished_seq",
)
COLUMNS = (*ASKED, *ENDED, *TIMES, "sum")

NOTHING = "{}"
"""What metrics and spread are where there are none."""


class TrialStateRow(NamedTuple):
    """Fields of a trial that can change before it is finished, and those of its checksum."""

    number: int
    design: str
    told: int
    state: str
    attempts: int
    worker: int | None
    asked_at: float | None = None
    begun_at: float | None = None

    def columns(self) -> dict[str, Any]:
        """The columns that can change, with the checksum."""
        ended = (self.state, NOTHING, NOTHING, None, 0.0, 0, self.attempts, self.worker, None)
        return {
            "state": self.state,
            "attempts": self.attempts,
            "worker": self.worker,
            "begun_at": self.begun_at,
            "sum": _sum(self, ended, (self.asked_at, self.begun_at, None)),
        }

    def ended(self, outcome: Outcome, *, seq: int, worker: int | None) -> dict[str, Any]:
        """The columns that an outcome fills.

        Args:
            outcome: What became of the trial.
            seq: Its place among all that ended.
            worker: Who finished it; without, who held it.
        """
        ended = (
            outcome.state.value,
            numbers_text(outcome.metrics),
            numbers_text(outcome.spread),
            fault_text(outcome.fault),
            float(outcome.cost_s),
            int(outcome.measured),
            self.attempts,
            self.worker if worker is None else worker,
            seq,
        )
        begun_at = self.begun_at if outcome.begun_at is None else float(outcome.begun_at)
        finished_at = None if outcome.finished_at is None else float(outcome.finished_at)
        return {
            **dict(zip(ENDED, ended, strict=True)),
            "begun_at": begun_at,
            "finished_at": finished_at,
            "sum": _sum(self, ended, (self.asked_at, begun_at, finished_at)),
        }


def row_of(trial: Trial, seq: int | None = None) -> dict[str, Any]:
    """All columns of a trial; ``seq`` is its place among all that ended, if it has."""
    standing = TrialStateRow(
        number=trial.number,
        design=canonical(dict(trial.design)),
        told=trial.told,
        state=trial.state.value,
        attempts=trial.attempts,
        worker=trial.worker,
        asked_at=trial.asked_at,
        begun_at=trial.begun_at,
    )
    asked = {
        "number": trial.number,
        "design": standing.design,
        "key": trial.design.key,
        "told": trial.told,
        "asked_at": trial.asked_at,
    }
    if seq is not None:
        return {**asked, **standing.ended(trial.outcome, seq=seq, worker=None)}
    return {**asked, **_UNFINISHED, **standing.columns()}


def standing_of(study: str, row: Row) -> tuple[TrialStateRow, bool]:
    """Return the state of the trial in a row of :data:`COLUMNS`, and whether it is finished.

    Args:
        study: the study's name, for the message.
        row: what was read.

    Raises:
        StorageError: the row is damaged.
    """
    check_sums(study, [row])
    number, design, told, state, *_, attempts, worker, _, asked_at, begun_at, _, _ = row
    standing = TrialStateRow(number, design, told, state, attempts, worker, asked_at, begun_at)
    return standing, State(state).finished


def check_sums(study: str, rows: Sequence[Row]) -> None:
    """Nothing, if these rows of :data:`COLUMNS` are as they were written.

    Args:
        study: the study's name, for the message.
        rows: what was read.

    Raises:
        StorageError: one is not.
    """
    for (
        n,
        design,
        told,
        state,
        metrics,
        spread,
        fault,
        cost,
        measured,
        tries,
        by,
        seq,
        *times,
        kept,
    ) in rows:
        cost_s = cost.hex() if isinstance(cost, float) else cost
        asked, ended = f"{n} {design} {told}", f"{state} {metrics} {spread} {fault} {cost_s}"
        when = "" if times == _UNTIMED else _times_text(times)
        if crc32(f"{asked} {ended} {measured} {tries} {by} {seq}{when}".encode()) != kept:
            raise build_damage_error(study, f"trial {n} is damaged")


_UNFINISHED = {
    "metrics": NOTHING,
    "spread": NOTHING,
    "fault": None,
    "cost_s": 0.0,
    "measured": 0,
    "finished_seq": None,
    "finished_at": None,
}

_UNTIMED: list[float | None] = [None, None, None]
"""The times of a trial of which nobody noted any: its sum is that of versions without times."""


def _times_text(times: Row) -> str:
    """Return what the times add to the text of a row's checksum."""
    return "".join(f" {one}" for one in times)


def _sum(one: TrialStateRow, ended: Row, times: Row) -> int:
    """The checksum of a row, as :func:`check_sums` finds it."""
    when = "" if list(times) == _UNTIMED else _times_text(times)
    state, metrics, spread, fault, cost_s, measured, tries, by, seq = ended
    text = f"{one.number} {one.design} {one.told} {state} {metrics} {spread} {fault} "
    return crc32(f"{text}{cost_s.hex()} {measured} {tries} {by} {seq}{when}".encode())
