"""Sound part of a damaged study, written as a file that can be imported again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from dse.core.problem import Problem
from dse.core.trial import Damage, State
from dse.errors import DesignError, DseError, StorageError, StudyError
from dse.interop.archive import archive as portable
from dse.interop.archive.record import about
from dse.interop.archive.salvage import Salvage, open_salvage, ranges
from dse.protocols import Storage, SupportsReading
from dse.report.schemas.transfer import Exported, LeftOut
from dse.schema.history.record import begun_with, kept_plan
from dse.schema.history.without_storages import storageless
from dse.schema.study.plan import plan_of
from dse.schema.yaml.source import shown
from dse.services.studies.anonymize import nameless
from dse.study.study import DEFAULT_STORAGE, opened_storage


def salvage_study(
    name: str,
    file: Path,
    *,
    called: str | None = None,
    study: Path | None = None,
    storage: str | Storage | None = None,
    with_machine: bool = False,
) -> Exported:
    """Write every sound row of a study to a file.

    What was left out is reported, and kept with the study.

    Sound trials keep their order and are numbered without a gap.

    Args:
        name: the study's, or ``#ID`` where that is damaged.
        file: where to: lines of JSON or Parquet.
        called: what it is called there.
        study: the study file, where the question that was stored is damaged.
        storage: where the study is, or its URL.
        with_machine: with the names of hosts, users and folders as they are.

    Raises:
        StorageError: the file cannot be written, the storage has no rows, or the study's question
            is damaged and no file says it.
        StudyError: there is no such study, or its trials are not designs of the file's space.
    """
    opened = opened_storage(storage or DEFAULT_STORAGE)
    if not isinstance(opened, SupportsReading):
        raise StorageError("this storage cannot be read past its damage", hint="export without it")
    spec = None if study is None else begun_with(plan_of(study))
    with open_salvage(opened, name, spec) as found:
        told = storageless(_checked_spec(found, study))
        shown_as = replace(found, study=called or name.removeprefix("#"), spec=told, about={})
        whole = replace(shown_as, about=_about(told))
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
    """The spec, if there is one and the trials are of its space.

    Raises:
        StorageError: the question is damaged, and no file says it.
        StudyError: a trial is no design of the file's space.
    """
    if study is not None:
        _check_designs(found, plan_of(study).problem, shown(study))
    elif not found.spec.get("texts"):
        raise StorageError(
            f"study {found.study!r}: its question is damaged, so nothing says what its trials are",
            hint="name the file that it was begun with: --study STUDY.yaml",
        )
    return found.spec


def _check_designs(found: Salvage, problem: Problem, file: str) -> None:
    for trial, _ in found.placed_trials():
        try:
            if trial.state is not State.OUTSIDE:
                problem.space.check(trial.design)
        except DesignError as error:
            raise StudyError(
                f"study {found.study!r}: a trial is no design of the space of {file}: {error}",
                hint="name the file that the study was begun with",
            ) from error


def _about(spec: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the meaning of names and numbers; empty where the record does not give it."""
    try:
        return about(kept_plan(spec).problem)
    except (DseError, KeyError, TypeError, ValueError, AttributeError):
        return {}


def _left_out(one: Damage) -> LeftOut:
    rows = [list(run) for run in ranges(one.rows)]
    return {"part": one.part, "rows": rows, "reason": one.reason}
