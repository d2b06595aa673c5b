"""Conversion of trials to rows of their table, each with a checksum, and of rows to columns.

Columns are arrays over the trials, for fast reading of large studies.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np

from dse.core.trial import Outcome, State, Trial
from dse.core.trials import STATES, TIMES, Trials, numbers, objects
from dse.core.values import Floats, Ints
from dse.storage.sql.codec import (
    build_damage_error,
    canonical,
    failure_of,
    failure_text,
    numbers_text,
)

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
        """Return the columns of a trial's row that can change, by name, with the new checksum."""
        ended = (self.state, NOTHING, NOTHING, None, 0.0, 0, self.attempts, self.worker, None)
        return {
            "state": self.state,
            "attempts": self.attempts,
            "worker": self.worker,
            "begun_at": self.begun_at,
            "sum": _sum(self, ended, (self.asked_at, self.begun_at, None)),
        }

    def ended(self, outcome: Outcome, *, seq: int, worker: int | None) -> dict[str, Any]:
        """Return the columns that change when a trial finishes, by name.

        Args:
            outcome: the outcome of the trial.
            seq: the trial's index in the order of finishing.
            worker: the driver that finished the trial; ``None`` for the driver it is assigned to.
        """
        ended = (
            outcome.state.value,
            numbers_text(outcome.metrics),
            numbers_text(outcome.spread),
            failure_text(outcome.failure),
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
    """Return all columns of a trial's row; ``seq`` is its index in the order of finishing."""
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
        failure,
        cost,
        measured,
        tries,
        by,
        seq,
        *times,
        kept,
    ) in rows:
        cost_s = cost.hex() if isinstance(cost, float) else cost
        asked, ended = f"{n} {design} {finished}", f"{state} {metrics} {spread} {failure} {cost_s}"
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
    state, metrics, spread, failure, cost_s, measured, tries, by, seq = ended
    text = f"{one.number} {one.design} {one.told} {state} {metrics} {spread} {failure} "
    return crc32(f"{text}{cost_s.hex()} {measured} {tries} {by} {seq}{when}".encode())


_CODES = {state.value: code for code, state in enumerate(STATES)}
_MANY = 5_000
"""Number of rows from which pyarrow saves more time than its import takes."""


def trials_of(study: str, pages: Iterable[Sequence[Row]]) -> Trials:
    """Convert database rows with the columns :data:`COLUMNS` to trials.

    Args:
        study: the study's name, for the message.
        pages: chunks of rows.

    Raises:
        StorageError: a row is damaged; the message has its number.
    """
    found = [_page(study, rows) for rows in pages]
    return Trials.joined(found)


def _page(study: str, rows: Sequence[Row]) -> Trials:
    try:
        check_sums(study, rows)
        return _columns(rows)
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError) as error:
        if len(rows) == 1:
            raise build_damage_error(study, f"trial {rows[0][0]} is damaged: {error}") from error
        return Trials.joined([_page(study, [row]) for row in rows])


def _columns(rows: Sequence[Row]) -> Trials:
    columns = dict(zip(COLUMNS, zip(*rows, strict=True), strict=True))
    failures = {text: failure_of(text) for text in set(columns["fault"])}
    found = Trials(
        number=np.array(columns["number"], dtype=np.int64),
        told=np.array(columns["told"], dtype=np.int64),
        state=np.array([_CODES[state] for state in columns["state"]], dtype=np.int8),
        cost_s=np.array(columns["cost_s"], dtype=np.float64),
        measured=np.array(columns["measured"], dtype=np.int64),
        attempts=np.array(columns["attempts"], dtype=np.int64),
        worker=_or_none(columns["worker"]),
        ended=_or_none(columns["finished_seq"]),
        **{name: np.array(columns[name], dtype=np.float64) for name in TIMES},  # None is NaN
        designs=objects(columns["design"]),
        failures=objects([failures[text] for text in columns["fault"]]),
        metrics=_numbers(columns["metrics"]),
        spread=_numbers(columns["spread"]),
    )
    if (found.over != (found.ended >= 0)).any():
        raise ValueError("its state contradicts its index among the finished trials")
    return found


def _or_none(values: Sequence[int | None]) -> Ints:
    return np.array([-1 if one is None else one for one in values], dtype=np.int64)


def _numbers(texts: Sequence[str]) -> dict[str, Floats]:
    """Parse one JSON object of numbers per trial to arrays over the trials, by name."""
    if texts.count(NOTHING) == len(texts):
        return {}
    if len(texts) >= _MANY:
        with suppress(ValueError):  # pyarrow refuses lone surrogates in names
            return _arrow_numbers(texts)
    rows = json.loads(f"[{','.join(texts)}]")  # one parser call takes half the time
    if len(rows) != len(texts):
        raise ValueError("its numbers are no object of JSON")
    return numbers(rows)


def _arrow_numbers(texts: Sequence[str]) -> dict[str, Floats]:
    """Parse one JSON object of numbers per trial to arrays by name, with pyarrow."""
    import pyarrow as pa
    from pyarrow.json import ReadOptions, read_json

    lines = "\n".join(texts).encode()
    options = ReadOptions(use_threads=False, block_size=len(lines) + 1)
    table = read_json(pa.BufferReader(lines), read_options=options)
    if table.num_rows != len(texts):
        raise ValueError("its numbers are no object of JSON")
    return {
        name: np.asarray(table.column(name).to_numpy(), dtype=np.float64)
        for name in sorted(table.column_names)
    }
