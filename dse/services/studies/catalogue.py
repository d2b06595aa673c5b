"""The studies of a storage: what each is, and how one is forgotten."""

from __future__ import annotations

from dataclasses import replace

from dse.core.trial import Summary
from dse.errors import StorageError
from dse.interop.archive.salvage import DamageNotes, damage_text
from dse.protocols import Storage, SupportsReading, SupportsSummaries
from dse.report.schemas.study import Forgotten, StudyRow
from dse.study.study import DEFAULT_STORAGE, opened_storage, unknown_study

MOST_CHECKED = 10_000
"""Rows of a storage that are checked by the way, in a tenth of a second; see ``dse doctor``."""


def study_rows(storage: str | Storage | None = None) -> list[StudyRow]:
    """Return the studies of a storage, each with its counts and its question.

    Of a small storage all rows are checked; of a large one no trial is read.

    Raises:
        StorageError: it cannot be opened.
    """
    opened = opened_storage(storage or DEFAULT_STORAGE)
    found = summaries(opened)
    if isinstance(opened, SupportsReading) and sum(one.rows for one in found) <= MOST_CHECKED:
        found = [_check_rows(opened, one) for one in found]
    return [_row(one) for one in found]


def forgettable(storage: Storage, name: str) -> Forgotten:
    """Return what deleting a study would remove.

    Raises:
        StudyError: there is none.
    """
    found = {one.study: one for one in summaries(storage)}
    if name not in found:
        raise unknown_study(name, found)
    return {"study": name, "trials": found[name].trials}


def summaries(storage: Storage) -> list[Summary]:
    """Return a summary of each study; a storage that has none is read study by study."""
    if isinstance(storage, SupportsSummaries):
        return storage.summaries()
    return [_summary(storage, name) for name in storage.studies()]


def _check_rows(storage: SupportsReading, one: Summary) -> Summary:
    """Return the summary with the first damage of any row."""
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
