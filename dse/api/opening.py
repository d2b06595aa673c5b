"""How a study comes to be in Python: from what is asked here, or from its record."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from dse import study as engine
from dse.api.question import Cast, Evaluators
from dse.api.space import Space
from dse.errors import SpecError, StudyError
from dse.protocols import Storage
from dse.schema.plan import Plan, plan_of

Planned = Callable[..., Plan]
"""Gives the plan, by another ``optimizer`` or with another ``seed`` where it is told so."""


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


def loaded(name: str, storage: str | Storage | None, evaluators: Evaluators) -> engine.Study:
    """The study of that name, from its record, with the functions that it was begun with.

    Raises:
        StudyError: there is none, or a function is another than it was.
    """
    objects = Cast.of(evaluators, ()).objects if evaluators else {}
    found = engine.Study.load(name, storage, objects=objects)
    for label, told in found.plan.identity["evaluators"].items():
        given = objects.get(told["options"].get("function"))
        if given is not None and given.version != told["options"]["version"]:
            raise StudyError(
                f"the function {label!r} is another than the study {name!r} was begun with",
                hint="ask it under another name, or give the version that it had",
            )
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
