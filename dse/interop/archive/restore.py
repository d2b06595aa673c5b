"""Import of a record into a storage, atomically."""

from __future__ import annotations

from dse.core.trial import History
from dse.errors import StudyError
from dse.interop.archive.record import Record
from dse.protocols import Storage
from dse.storage.trust import add_import_mark, remove_import_mark, without_trust


def restore(
    record: Record, storage: Storage, *, name: str | None = None, trusted: bool = False
) -> None:
    """Create a study with the complete contents of a record.

    Args:
        record: the record, possibly from an untrusted source.
        storage: target storage.
        name: name of the study; by default that in the record.
        trusted: the study may be run at once; otherwise only after
            :func:`dse.storage.trust.trust`.

    Raises:
        StudyError: there is a study of that name already.
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
