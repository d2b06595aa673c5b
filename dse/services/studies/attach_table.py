"""Attachment of a table of results, or of a file of Kernel Tuner, to a study."""

from __future__ import annotations

from pathlib import Path

from dse.interop.found_trials import read_table
from dse.interop.kernel_tuner import read_t4
from dse.report.schemas.transfer_schema import AttachedResults
from dse.study.attach import attach_found
from dse.study.study_engine import StudyEngine


def attach_table(study: StudyEngine, file: Path) -> AttachedResults:
    """Attach the rows of a CSV file, or a file of Kernel Tuner, to a study as finished trials.

    Args:
        study: the study.
        file: a table with a column per parameter and measured metric; or, if its name ends in
            ``.json``, results of Kernel Tuner in its format T4.

    Raises:
        StorageError: the file cannot be read, or is not a valid table.
        StudyError: no row can be attached, or the study differs from what it was begun with.
    """
    is_t4 = file.suffix == ".json"
    found = read_t4(file, study.problem.measured) if is_t4 else read_table(file)
    done = attach_found(study, found, source=file.name)
    return {
        "study": study.name,
        "attached": len(done.trials),
        "first": done.trials[0].number,
        "trials": len(study.trials),
        "left_out": dict(done.left_out),
    }
