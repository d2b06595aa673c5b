"""A record put into a storage: all of it in one step, or nothing."""

from __future__ import annotations

from dse.core.trial import History
from dse.errors import StudyError
from dse.interchange.portable_record import Record
from dse.protocols import Storage


def restore(record: Record, storage: Storage, *, name: str | None = None) -> None:
    """Begin a study with all that the record holds.

    Raises:
        StudyError: there is a study of that name.
    """
    study = record.study if name is None else name
    if study in storage.studies():
        raise StudyError(
            f"there is a study {study!r} already", hint="take another name: --name NAME"
        )
    history = History(
        trials=record.trials,
        order=record.finished_order,
        events=record.events,
        asks=record.asks,
        attempts=record.attempts,
        reports=record.reports,
        drivers=record.drivers,
    )
    storage.create(study, record.spec, history)
