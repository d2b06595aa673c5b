"""Import and export of ConfigSpace's JSON, as used by its ``to_json`` and ``from_json``.

Source:
    https://automl.github.io/ConfigSpace/latest/reference/serialization/, format version 0.4.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from dse.core.expressions.expression import Expression
from dse.core.parameter import Parameter, Real
from dse.core.space import DesignSpace
from dse.errors import SpecError
from dse.interop.configspace.clauses import Clauses
from dse.interop.configspace.conditions import Clause
from dse.interop.configspace.forbidden import Forbidden
from dse.interop.configspace.hyperparameters import HyperparameterReader, hyperparameter, name_in
from dse.interop.conversion import SpaceExport, SpaceImport, UnsupportedRules
from dse.interop.document import Document, NameMap
from dse.interop.value_conversion import first

FORMAT_VERSION = 0.4


def read_configspace(text: str, file: str = "configspace.json") -> SpaceImport:
    """Return the space that ConfigSpace's JSON describes.

    Args:
        text: output of ``ConfigurationSpace.to_json``, in this format version or an older one.
        file: file name for error messages.

    Raises:
        SpecError: the text is not in ConfigSpace's format, or is inconsistent.
    """
    document = Document(text, file)
    names, reader = NameMap(), HyperparameterReader()
    parameters: dict[str, Parameter] = {}
    for item in _items(document, "hyperparameters"):
        with _locate_mistakes(document, item, "name"):
            theirs = name_in(item)
            if theirs in parameters:
                raise SpecError(f"there are two hyperparameters {theirs!r}")
            parameters[theirs] = reader.parameter(item, names.add(theirs))
    if not parameters:
        raise SpecError("there are no hyperparameters", where=f"{file}:1")
    conditions = _conditions(document, parameters)
    clauses = Clauses(parameters, conditions.keys())
    rules: list[Expression] = []
    for item in _items(document, "forbiddens"):
        with _locate_mistakes(document, item, "name"):
            rules += clauses.rules(item)
    space = DesignSpace(
        parameters=tuple(parameters.values()), conditions=conditions, constraints=tuple(rules)
    )
    called = document.value.get("name")
    return SpaceImport(
        space=space,
        name=called if isinstance(called, str) else "",
        names=names.ours,
        warnings=(*names.warnings, *reader.warnings, *_defaults(document)),
    )


def write(space: DesignSpace, name: str, *, drop_rules: bool = False) -> SpaceExport:
    """Export a space as a JSON text that ``ConfigurationSpace.from_json`` reads.

    The default configuration is one legal design.

    Args:
        space: the space to export.
        name: name of the space in the text.
        drop_rules: omit rules that ConfigSpace cannot express, each with a warning; the result is
            a superset of the space.

    Raises:
        SpecError: ConfigSpace cannot express a rule or condition, and ``drop_rules`` is false.
        DesignError: the space has no legal design.
    """
    defaults = space.sample(1, np.random.default_rng(0)).row(0)
    forbidden, unsaid = Forbidden(space), UnsupportedRules("ConfigSpace", space)
    conditions: list[Clause] = []
    for child in space.conditions:
        with unsaid.condition(child):
            found = forbidden.condition(child)
            conditions += [] if isinstance(found, bool) else [found]
    clauses: list[Clause] = []
    for rule in space.constraints:
        with unsaid.rule(rule):
            clauses += forbidden.clauses(rule)
    warnings = unsaid.warnings(drop=drop_rules)
    value = {
        "name": name,
        "hyperparameters": [
            hyperparameter(p, defaults.get(p.name, first(p)))
            for p in space.parameters
            if p.name not in forbidden.never
        ],
        "conditions": conditions,
        "forbiddens": clauses,
        "format_version": FORMAT_VERSION,
    }
    never = [f"{child} is never active, and is left out" for child in sorted(forbidden.never)]
    text = json.dumps(value, indent=2, allow_nan=False) + "\n"
    return SpaceExport(text=text, warnings=(*warnings, *never, *forbidden.warnings))


def _conditions(document: Document, parameters: Mapping[str, Parameter]) -> dict[str, Expression]:
    items: dict[str, Any] = {}
    for item in _items(document, "conditions"):
        with _locate_mistakes(document, item, "child"):
            child = name_in(item, "child")
            if child not in parameters:
                raise SpecError(f"a condition names {child!r}, which is not defined")
            if parameters[child].name in items:
                raise SpecError(f"{child!r} has two conditions", hint="join them by AND or OR")
            items[parameters[child].name] = item
    clauses = Clauses(parameters, items.keys())
    found: dict[str, Expression] = {}
    for name, item in items.items():
        with _locate_mistakes(document, item, "child"):
            found[name] = clauses.condition(item)
    _check(found, {p.name: p for p in parameters.values()}, document)
    return found


def _check(
    conditions: Mapping[str, Expression], parameters: Mapping[str, Parameter], document: Document
) -> None:
    """Raise SpecError for cyclic conditions, and for a finite parameter's on a real parameter."""
    for name, rule in conditions.items():
        above, seen = set(rule.names), {name}
        while above:
            parent = above.pop()
            if parent == name:
                raise SpecError(f"{name} is active by itself", where=document.place(name))
            if parent not in seen and parent in conditions:
                above |= conditions[parent].names
            seen.add(parent)
        real = sorted(n for n in rule.names if isinstance(parameters[n], Real))
        if real and not isinstance(parameters[name], Real):
            raise SpecError(
                f"{name} cannot be active by the value of {real[0]}, a real parameter",
                where=document.place(name),
                hint=f"give {real[0]} steps",
            )


def _defaults(document: Document) -> list[str]:
    """Return a warning that lists the default values of the file, which a space cannot hold.

    It is empty if the file has no defaults.
    """
    defaults = {
        item["name"]: item.get("default_value", item.get("default"))
        for item in document.value["hyperparameters"]
    }
    listed = ", ".join(f"{name}: {value}" for name, value in defaults.items() if value is not None)
    if not listed:
        return []
    return [f"defaults are not part of a space; a study's 'baselines' can hold them: {listed}"]


def _items(document: Document, key: str) -> list[Any]:
    found = document.value.get(key, [])
    if not isinstance(found, list):
        raise SpecError(f"{key!r} is no list", where=document.place(key))
    return found


@contextmanager
def _locate_mistakes(document: Document, item: Any, key: str) -> Iterator[None]:
    """Within the block, add the line number of the item's name to a raised SpecError."""
    try:
        yield
    except SpecError as error:
        name = item.get(key) if isinstance(item, dict) else None
        where = document.place(name) if isinstance(name, str) else f"{document.file}:1"
        raise error.at(where) from error
