"""Conversion of trials to rows of their table, each with a checksum over its columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple
from zlib import crc32

from dse.core.trial import Outcome, State, Trial
from dse.core.trials import TIMES
from dse.storage.sql.codec import build_damage_error, canonical, fault_text, numbers_text

Row = Sequence[Any]
"""Row of the database driver, with the values of the selected columns."""

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
"""JSON text of empty metrics and standard errors."""


class TrialStateRow(NamedTuple):
    """Columns of an unfinished trial's row that can change, or that its checksum covers."""

    number: int
    design: str
    told: int
    state: str
    attempts: int
    worker: int | None
    asked_at: float | None = None
    begun_at: float | None = None

    def columns(self) -> dict[str, Any]:
        """Return the columns that can change, by name, with the new checksum."""
        ended = (self.state, NOTHING, NOTHING, None, 0.0, 0, self.attempts, self.worker, None)
        return {
            "state": self.state,
            "attempts": self.attempts,
            "worker": self.worker,
            "begun_at": self.begun_at,
            "sum": _sum(self, ended, (self.asked_at, self.begun_at, None)),
        }

    def ended(self, outcome: Outcome, *, seq: int, worker: int | None) -> dict[str, Any]:
        """Return the columns that change when the trial finishes, by name.

        Args:
            outcome: the outcome of the trial.
            seq: the trial's index in the order of finishing.
            worker: the driver that finished the trial; ``None`` for the driver it is assigned to.
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
    """Return all columns of a trial's row; ``seq`` is its index among the finished, if any."""
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
    """Return the columns of a trial that can change, from its row, and whether it is finished.

    Args:
        study: the study's name, for the message.
        row: the row, with the columns :data:`COLUMNS`.

    Raises:
        StorageError: the row is damaged.
    """
    check_sums(study, [row])
    number, design, finished, state, *_, attempts, worker, _, asked_at, begun_at, _, _ = row
    standing = TrialStateRow(number, design, finished, state, attempts, worker, asked_at, begun_at)
    return standing, State(state).finished


def check_sums(study: str, rows: Sequence[Row]) -> None:
    """Check that rows of :data:`COLUMNS` match their checksums.

    Args:
        study: the study's name, for the message.
        rows: the rows.

    Raises:
        StorageError: a row does not match.
    """
    for (
        n,
        design,
        finished,
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
        asked, ended = f"{n} {design} {finished}", f"{state} {metrics} {spread} {fault} {cost_s}"
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
"""Times of a trial without recorded times; its checksum is that of versions without times."""


def _times_text(times: Row) -> str:
    """Return the part of a row's checksummed text with its times: request, start and end."""
    return "".join(f" {one}" for one in times)


def _sum(one: TrialStateRow, ended: Row, times: Row) -> int:
    """Compute the checksum of a row; :func:`check_sums` must compute the same."""
    when = "" if list(times) == _UNTIMED else _times_text(times)
    state, metrics, spread, fault, cost_s, measured, tries, by, seq = ended
    text = f"{one.number} {one.design} {one.told} {state} {metrics} {spread} {fault} "
    return crc32(f"{text}{cost_s.hex()} {measured} {tries} {by} {seq}{when}".encode())
