"""List of the studies of a storage, and preview of the deletion of one."""

from __future__ import annotations

from dataclasses import replace

from dse.core.trial import Summary
from dse.errors import StorageError
from dse.interop.archive.salvage import DamageNotes, damage_text
from dse.protocols import Storage, SupportsReading, SupportsSummaries
from dse.report.schemas.study_schema import Forgotten, StudyRow
from dse.study.storage_access import DEFAULT_STORAGE, opened_storage, unknown_study

MOST_CHECKED = 10_000
"""Largest number of rows that a listing checks, in 0.1 s; ``dse doctor`` checks all."""


def study_rows(storage: str | Storage | None = None) -> list[StudyRow]:
    """Return a summary of each study of a storage: trial counts, and the question in its file.

    If the storage has at most :data:`MOST_CHECKED` database rows, all are checked for damage;
    otherwise no trial is read.

    Raises:
        StorageError: the storage cannot be opened.
    """
    opened = opened_storage(storage or DEFAULT_STORAGE)
    found = summaries(opened)
    if isinstance(opened, SupportsReading) and sum(one.rows for one in found) <= MOST_CHECKED:
        found = [_check_rows(opened, one) for one in found]
    return [_row(one) for one in found]


def forgettable(storage: Storage, name: str) -> Forgotten:
    """Return what deleting a study would remove: the name and the number of trials.

    Raises:
        StudyError: there is no such study.
    """
    found = {one.study: one for one in summaries(storage)}
    if name not in found:
        raise unknown_study(name, found)
    return {"study": name, "trials": found[name].trials}


def summaries(storage: Storage) -> list[Summary]:
    """Return a summary of each study of a storage, by the storage's own method if it has one."""
    if isinstance(storage, SupportsSummaries):
        return storage.summaries()
    return [_summary(storage, name) for name in storage.studies()]


def _check_rows(storage: SupportsReading, one: Summary) -> Summary:
    """Return a study's summary after checking its stored rows, with a description of any damage."""
    notes = DamageNotes()
    try:
        with storage.reader(one.study, notes.take) as reader:
            for _ in reader.check():
                pass
    except StorageError as error:
        return replace(one, problem=one.problem or error.problem)
    return replace(one, problem=one.problem or "; ".join(map(damage_text, notes.damages)))


def _summary(storage: Storage, name: str) -> Summary:
    try:
        spec, trials = storage.spec(name) or {}, storage.trials(name)
    except StorageError as error:
        return Summary(study=name, trials=None, finished=None, problem=error.problem)
    finished = int(trials.over.sum())
    return Summary(study=name, spec=spec, trials=len(trials), finished=finished)


def _row(one: Summary) -> StudyRow:
    return {
        "study": one.study,
        "trials": one.trials,
        "finished": one.finished,
        "question": str(one.spec.get("question", "")),
        "problem": one.problem,
    }
