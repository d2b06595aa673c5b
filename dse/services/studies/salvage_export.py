"""Export of the intact part of a damaged study, as a file that can be imported again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from dse.core.problem import Problem
from dse.core.trial import Damage, State
from dse.errors import DesignError, DseError, StorageError, StudyError
from dse.interop.archive import archive as portable
from dse.interop.archive.salvage import Salvage, open_salvage, ranges
from dse.interop.archive.study_record import about
from dse.protocols import Storage, SupportsReading
from dse.report.schemas.transfer_schema import Exported, LeftOut
from dse.schema.history.recorded_specification import begun_with, kept_plan
from dse.schema.history.without_storages import storageless
from dse.schema.study.plan import plan_of
from dse.schema.yaml.source import shown
from dse.services.studies.anonymize import nameless
from dse.study.storage_access import DEFAULT_STORAGE, opened_storage


def salvage_study(
    name: str,
    file: Path,
    *,
    called: str | None = None,
    study: Path | None = None,
    storage: str | Storage | None = None,
    with_machine: bool = False,
) -> Exported:
    """Export every intact row of a damaged study to a file, and report the rows left out.

    The report is also recorded in the exported study. Intact trials keep their order and are
    renumbered without gaps.

    Args:
        name: name of the study, or ``#ID`` if its name is damaged.
        file: target file, JSON lines or Parquet.
        called: name of the study in the file; by default unchanged.
        study: study file, needed if the stored specification is damaged.
        storage: storage of the study, or its URL.
        with_machine: keep the names of hosts, users and folders.

    Raises:
        StorageError: the file cannot be written, the storage cannot be read past damage, or the
            study's specification is damaged and no study file is given.
        StudyError: there is no such study, or its trials are not designs of the file's space.
    """
    opened = opened_storage(storage or DEFAULT_STORAGE)
    if not isinstance(opened, SupportsReading):
        raise StorageError(
            "this storage cannot be read past its damage", hint="export without --salvage"
        )
    spec = None if study is None else begun_with(plan_of(study))
    with open_salvage(opened, name, spec) as found:
        plain_spec = storageless(_checked_spec(found, study))
        shown_as = replace(found, study=called or name.removeprefix("#"), spec=plain_spec, about={})
        whole = replace(shown_as, about=_about(plain_spec))
        check_sum = portable.write(whole if with_machine else nameless(whole), file)
        return {
            "study": shown_as.study,
            "trials": found.count,
            "to": str(file),
            "sha256": check_sum,
            "notes": [],
            "left_out": [_left_out(one) for one in found.damages],
        }


def _checked_spec(found: Salvage, study: Path | None) -> Mapping[str, Any]:
    """Return the spec of a study, after checking its trials against a given study file.

    Raises:
        StorageError: the specification is damaged, and no study file is given.
        StudyError: a trial is not a design of the file's space.
    """
    if study is not None:
        _check_designs(found, plan_of(study).problem, shown(study))
    elif not found.spec.get("texts"):
        raise StorageError(
            f"study {found.study!r}: its question is damaged, so its trials cannot be interpreted",
            hint="name the study file that it was created from: --study STUDY.yaml",
        )
    return found.spec


def _check_designs(found: Salvage, problem: Problem, file: str) -> None:
    for trial, _ in found.placed_trials():
        try:
            if trial.state is not State.OUTSIDE:
                problem.space.check(trial.design)
        except DesignError as error:
            raise StudyError(
                f"study {found.study!r}: a trial is not a design of the space of {file}: {error}",
                hint="name the study file that the study was created from",
            ) from error


def _about(spec: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return units, kinds and goals of parameters and metrics; empty if the spec is unreadable."""
    try:
        return about(kept_plan(spec).problem)
    except (DseError, KeyError, TypeError, ValueError, AttributeError):
        return {}


def _left_out(one: Damage) -> LeftOut:
    rows = [list(run) for run in ranges(one.rows)]
    return {"part": one.part, "rows": rows, "reason": one.reason}
