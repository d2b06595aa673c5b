"""Checksums for the rows of databases of schema version 1, which have no checksums.

This is part of a released migration step and must not be changed.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Any
from zlib import crc32

from sqlalchemy import Connection, text

_ROWS = 10_000

_STUDIES = (
    text("SELECT id, name, spec, trials, finished, events FROM dse_studies"),
    text("UPDATE dse_studies SET sum = :sum, counted = :counted WHERE id = :id"),
)
_EVENTS = (
    text("SELECT study, seq, kind, text, told FROM dse_events"),
    text("UPDATE dse_events SET sum = :sum WHERE study = :study AND seq = :seq"),
)
_TRIALS = (
    text(
        "SELECT study, number, key, design, told, state, metrics, spread, fault, cost_s, measured, "
        "finished_seq FROM dse_trials"
    ),
    text("UPDATE dse_trials SET sum = :sum WHERE study = :study AND number = :number"),
)


def fill_sums(connection: Connection) -> None:
    """Write the checksum of every row; null for a trial whose key is not the key of its design."""
    for (question, answer), row_of in (
        (_STUDIES, _study),
        (_EVENTS, _event),
        (_TRIALS, _trial),
    ):
        rows = connection.execute(question).all()
        for start in range(0, len(rows), _ROWS):
            sums = [row_of(*row) for row in rows[start : start + _ROWS]]
            connection.execute(answer, sums)


def _study(number: int, name: str, spec: str, *counts: int) -> dict[str, Any]:
    counted = _sum(number, name, *counts, 0, 0, 0, 0)
    return {"id": number, "sum": _sum(number, name, spec), "counted": counted}


def _event(study: int, seq: int, kind: str, text: str, finished: int) -> dict[str, Any]:
    return {"study": study, "seq": seq, "sum": _sum(seq, kind, text, finished)}


def _trial(
    study: int, number: int, key: str, design: str, finished: int, *ended: Any
) -> dict[str, Any]:
    *known, cost_s, measured, seq = ended
    total: int | None = _sum(number, design, finished, *known, cost_s, measured, 0, None, seq)
    if sha256(str(design).encode("utf-8", "surrogatepass")).hexdigest()[:16] != key:
        total = None
    return {"study": study, "number": number, "sum": total}


def _sum(*values: object) -> int:
    texts = (one.hex() if isinstance(one, float) else str(one) for one in values)
    return crc32(" ".join(texts).encode("utf-8", "surrogatepass"))
