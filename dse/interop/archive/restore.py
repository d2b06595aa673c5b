"""A record put into a storage: all of it in one step, or nothing."""

from __future__ import annotations

from dse.core.trial import History
from dse.errors import StudyError
from dse.interop.archive.record import Record
from dse.protocols import Storage
from dse.storage.trust import add_import_mark, remove_import_mark, without_trust


def restore(
    record: Record, storage: Storage, *, name: str | None = None, trusted: bool = False
) -> None:
    """Begin a study with all that the record holds.

    Args:
        record: the study, perhaps a stranger's.
        storage: where to.
        name: instead of the record's.
        trusted: it may be run at once; else it waits for :func:`dse.storage.trust.trust`.

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
        events=without_trust(record.events),
        asks=record.asks,
        attempts=record.attempts,
        reports=record.reports,
        drivers=record.drivers,
    )
    spec = remove_import_mark(record.spec) if trusted else add_import_mark(record.spec)
    storage.create(study, spec, history)
