"""Creation of studies in Python: from arguments, from a study file, or from a stored record."""

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
"""Function that returns the plan, optionally with another ``optimizer`` or ``seed``."""


def begin_study(
    name: str,
    space: Space | Mapping[str, Any] | str | Path,
    evaluators: Evaluators,
    told: ToldMetrics,
    asked: StudyOptions,
    storage: str | Storage | None,
) -> tuple[engine.StudyEngine, Planned]:
    """Create the study that a program defines, or continue it; return it with its plan.

    Raises:
        SpecErrors: with every mistake in the definition.
        StudyError: a study of this name exists with another definition.
    """
    cast = EvaluatorSpecs.of(evaluators, told)
    planned = asked_here(document_of(name, cast, asked), space, cast.objects)
    mend = f"another name, or delete the old one: dse studies delete {name!r}"
    begun = engine.StudyEngine.of(planned(), storage=storage, hint=f"give this one {mend}")
    show_trials_of(begun.problem)
    return begun, planned


def open_study(
    file: str | Path, name: str | None, storage: str | Storage | None, seed: int | None
) -> tuple[engine.StudyEngine, Planned]:
    """Create the study of a study file, or continue it; return it with its plan.

    Raises:
        SpecErrors: with every mistake in the file, each with its line.
        StudyError: a study of this name exists with another definition.
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
    """Return a function that builds the execution plan of a study defined in Python.

    Args:
        document: the content of the equivalent study file, without the space.
        space: the space, the mapping of its parameters, or the path of its file.
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
    """Return the stored study of that name, with the functions that it was created with.

    Raises:
        StudyError: there is no such study, or a function has changed.
    """
    objects = EvaluatorSpecs.of(evaluators, ()).objects if evaluators else {}
    found = engine.StudyEngine.load(name, storage, objects=objects)
    for label, told in found.plan.identity["evaluators"].items():
        given = objects.get(told["options"].get("function"))
        if given is not None and given.version != told["options"]["version"]:
            raise StudyError(
                f"the function {label!r} is not the one that the study {name!r} was created with",
                hint="create the study under another name, or restore the function's old version",
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
