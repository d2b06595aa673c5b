"""Creation of studies in Python: from arguments, from a study file, or from a stored record."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from dse.api.design_space import Space
from dse.api.error_text import in_python
from dse.api.notebook.notebook_output import show_trials_of
from dse.api.python_optimizer import Factory, optimizer_entry
from dse.api.study_document import (
    Evaluators,
    EvaluatorSpecs,
    ReportedMetrics,
    StudyOptions,
    document_of,
)
from dse.errors import SpecError, StudyError
from dse.protocols import Optimizer, Storage
from dse.schema.study.plan import Plan, plan_of
from dse.schema.study.plugin_checks import PYTHON, is_python_optimizer
from dse.schema.yaml.files import resolve_path
from dse.study import study_engine as engine

Planned = Callable[..., Plan]
"""Function that returns the plan, optionally with another ``optimizer`` or ``seed``."""


def begin_study(
    name: str,
    space: Space | Mapping[str, Any] | str | Path,
    evaluators: Evaluators,
    reported: Mapping[str, ReportedMetrics],
    asked: StudyOptions,
    storage: str | Storage | None,
) -> tuple[engine.StudyEngine, Planned]:
    """Create or continue the study that a program defines; return it with its execution plan.

    Args:
        name: the study's name.
        space: its space.
        evaluators: its evaluators.
        reported: metrics that the program reports, by the name of their evaluator.
        asked: the other settings, by their keys in a study file.
        storage: the storage or its URL.

    Raises:
        SpecErrors: with every mistake in the definition.
        StudyError: a study of this name exists with another definition.
    """
    cast = EvaluatorSpecs.of(evaluators, reported)
    entry, optimizer = optimizer_entry(asked.get("optimizer"))
    document = document_of(name, cast, asked)
    if optimizer:
        document["optimizer"] = entry
    planned = asked_here(document, space, {**cast.objects, **optimizer})
    mend = f"another name, or delete the old one: dse studies delete {name!r}"
    begun = engine.StudyEngine.of(planned(), storage=storage, hint=f"give this one {mend}")
    show_trials_of(begun.problem)
    return begun, planned


def open_study(
    file: str | Path, name: str | None, storage: str | Storage | None, seed: int | None
) -> tuple[engine.StudyEngine, Planned]:
    """Create or continue the study of a study file; return it with its execution plan.

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

    The plan holds the problem, the evaluators, the optimizer, the executor and the budget.

    Args:
        document: the content of the equivalent study file, without the space.
        space: the space, the mapping of its parameters, or the path of its file.
        objects: the evaluator functions to which the document refers, by name.
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
    name: str,
    storage: str | Storage | None,
    evaluators: Evaluators,
    optimizer: Factory | Optimizer | None = None,
) -> engine.StudyEngine:
    """Return the stored study of that name, with functions and optimizer from the program.

    Args:
        name: the study's name.
        storage: a storage or its URL.
        evaluators: the functions with which the study was created.
        optimizer: the class, function or object of its optimizer, if a program defined it.

    Raises:
        StudyError: there is no such study, a function has changed, or the study has another
            optimizer.
        SpecError: ``optimizer`` is no class, function or object that can be an optimizer.
    """
    objects: dict[str, Any] = {}
    if evaluators:
        objects |= EvaluatorSpecs.of(evaluators).objects
    given = optimizer_entry(optimizer)[1]
    found = engine.StudyEngine.load(name, storage, objects={**objects, **given})
    _check_optimizer(found, optimizer, given)
    for label, identity in found.plan.identity["evaluators"].items():
        function = objects.get(identity["options"].get("function"))
        if function is not None and function.version != identity["options"]["version"]:
            raise StudyError(
                f"the function {label!r} is not the one that the study {name!r} was created with",
                hint="create the study under another name, or restore the function's old version",
            )
    show_trials_of(found.problem)
    return found


def _check_optimizer(
    study: engine.StudyEngine, optimizer: object, given: Mapping[str, Any]
) -> None:
    """Check that the optimizer that a program passes is the study's.

    Raises:
        StudyError: the study has another optimizer.
    """
    use = study.plan.optimizer.use
    if optimizer is None or use in given:
        return
    mine = next(iter(given), str(optimizer)).removeprefix(PYTHON)
    raise StudyError(
        f"the optimizer of the study {study.name!r} is {use.removeprefix(PYTHON)!r}, not {mine!r}",
        hint="a study keeps its optimizer: begin another study, or leave the argument out"
        if not is_python_optimizer(use)
        else "pass the class, function or object that the study was created with",
    )


def _space(space: object) -> Space:
    if isinstance(space, Space):
        return space
    if isinstance(space, Mapping):
        return Space(space)
    if isinstance(space, str | Path):
        return Space.read(space)
    hint = 'Space({"tile": [16, 32, 64]}), that mapping, or the path of a file'
    raise SpecError(f"{space!r} is no space", hint=hint)
