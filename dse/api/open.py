"""Creation of studies in Python: from arguments, or from a record."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from dse.api.error_text import in_python
from dse.api.notebook.progress import show_trials_of
from dse.api.space import Space
from dse.api.study_document import (
    Evaluators,
    EvaluatorSpecs,
    StudyOptions,
    ToldMetrics,
    document_of,
)
from dse.errors import SpecError, StudyError
from dse.protocols import Storage
from dse.schema.study.plan import Plan, plan_of
from dse.schema.yaml.files import resolve_path
from dse.study import study as engine

Planned = Callable[..., Plan]
"""Gives the plan, by another ``optimizer`` or with another ``seed`` where it is told so."""


def begin_study(
    name: str,
    space: Space | Mapping[str, Any] | str | Path,
    evaluators: Evaluators,
    told: ToldMetrics,
    asked: StudyOptions,
    storage: str | Storage | None,
) -> tuple[engine.StudyEngine, Planned]:
    """Begin the study that a program asks, or go on with it; return it with its plan.

    Raises:
        SpecErrors: with every mistake in the question.
        StudyError: a study of this name exists and asks something else.
    """
    cast = EvaluatorSpecs.of(evaluators, told)
    planned = asked_here(document_of(name, cast, asked), space, cast.objects)
    mend = f"another name, or forget the old one: dse studies delete {name!r}"
    begun = engine.StudyEngine.of(planned(), storage=storage, hint=f"give this one {mend}")
    show_trials_of(begun.problem)
    return begun, planned


def open_study(
    file: str | Path, name: str | None, storage: str | Storage | None, seed: int | None
) -> tuple[engine.StudyEngine, Planned]:
    """Begin the study of a file, or go on with it; return it with its plan.

    Raises:
        SpecErrors: with every mistake in the file, each with its line.
        StudyError: a study of this name exists and asks something else.
    """
    path = resolve_path(str(file), Path.cwd() / "study.yaml")
    with in_python():
        opened = engine.StudyEngine.open(path, name=name, storage=storage, seed=seed)
    show_trials_of(opened.problem)
    return opened, partial(plan_of, path, seed=seed)


def asked_here(
    document: Mapping[str, Any],
    space: Space | Mapping[str, Any] | str | Path,
    objects: Mapping[str, Any],
) -> Planned:
    """The plan of a question that was never written to a file.

    Args:
        document: what the study file would say, but for its space.
        space: the space, the mapping of its parameters, or its file.
        objects: the functions that the document names.
    """
    held = _space(space)
    path = Path.cwd() / f"({document['study']}) study"
    file = str(held.file or Path.cwd() / f"({document['study']}) space")
    documents: dict[str, Mapping[str, Any]] = {str(path): {**document, "space": file}}
    if held.file is None:
        documents[file] = held.document
    return partial(plan_of, path, documents=documents, objects=objects)


@in_python()
def load_study(
    name: str, storage: str | Storage | None, evaluators: Evaluators
) -> engine.StudyEngine:
    """Return the study of that name, from its record, with the functions that it was begun with.

    Raises:
        StudyError: there is none, or a function is another than it was.
    """
    objects = EvaluatorSpecs.of(evaluators, ()).objects if evaluators else {}
    found = engine.StudyEngine.load(name, storage, objects=objects)
    for label, told in found.plan.identity["evaluators"].items():
        given = objects.get(told["options"].get("function"))
        if given is not None and given.version != told["options"]["version"]:
            raise StudyError(
                f"the function {label!r} is another than the study {name!r} was begun with",
                hint="ask it under another name, or give the version that it had",
            )
    show_trials_of(found.problem)
    return found


def _space(space: object) -> Space:
    if isinstance(space, Space):
        return space
    if isinstance(space, Mapping):
        return Space(space)
    if isinstance(space, str | Path):
        return Space.read(space)
    hint = 'Space({"tile": [16, 32, 64]}), that mapping, or the path of a file'
    raise SpecError(f"{space!r} is no space", hint=hint)
