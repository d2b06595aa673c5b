"""The studies of a storage: what each is, and how one is forgotten."""

from __future__ import annotations

from dse.protocols import Storage
from dse.report.shapes.study import Forgotten, StudyRow
from dse.study import DEFAULT_STORAGE, opened_storage, unknown_study


def study_rows(storage: str | Storage | None = None) -> list[StudyRow]:
    """The studies of a storage, each with its trials and its question.

    Raises:
        StorageError: it cannot be opened.
    """
    opened = opened_storage(storage or DEFAULT_STORAGE)
    return [_row(opened, name) for name in opened.studies()]


def forgettable(storage: Storage, name: str) -> Forgotten:
    """What would go with a study.

    Raises:
        StudyError: there is none.
    """
    if name not in storage.studies():
        raise unknown_study(name, storage.studies())
    return {"study": name, "trials": len(storage.trials(name))}


def _row(storage: Storage, name: str) -> StudyRow:
    spec = storage.spec(name) or {}
    trials = storage.trials(name)
    return {
        "study": name,
        "trials": len(trials),
        "finished": int(trials.over.sum()),
        "question": spec.get("question", ""),
    }
