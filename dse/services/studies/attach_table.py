"""Attachment of a table of results to a study."""

from __future__ import annotations

from pathlib import Path

from dse.interop.found_trials import read_table
from dse.report.schemas.transfer_schema import AttachedResults
from dse.study.attach import attach_found
from dse.study.study_engine import StudyEngine


def attach_table(study: StudyEngine, file: Path) -> AttachedResults:
    """Attach the rows of a CSV file to a study as finished trials.

    Args:
        study: the study.
        file: a table with a column per parameter and measured metric.

    Raises:
        StorageError: the file cannot be read, or is not a valid table.
        StudyError: no row can be attached, or the study differs from what it was begun with.
    """
    done = attach_found(study, read_table(file), source=file.name)
    return {
        "study": study.name,
        "attached": len(done.trials),
        "first": done.trials[0].number,
        "trials": len(study.trials),
        "left_out": dict(done.left_out),
    }
