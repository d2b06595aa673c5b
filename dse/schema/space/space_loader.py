"""Construction of a checked search space from space files, or from a mapping of the same shape."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dse.core.compound_parameters import Structured
from dse.core.expressions.expression import Expression
from dse.core.space import DesignSpace
from dse.errors import DseError, SpecError
from dse.schema.space.builder import SpaceBuilder
from dse.schema.space.file import Fragment, Fragments
from dse.schema.space.include import IncludedFile, IncludeScope
from dse.schema.space.rule_parser import Rules
from dse.schema.space.rules.satisfiable import check_satisfiable
from dse.schema.yaml.error_collector import ErrorCollector, HiddenError
from dse.schema.yaml.files import Files
from dse.schema.yaml.python_source import source_of
from dse.schema.yaml.source import shown


def space_of(
    path: Path, files: Files, *, named_at: str = "", may_be_empty: bool = False
) -> DesignSpace:
    """Read a space file with its includes, check it, and return the space.

    Args:
        path: the file.
        files: the source of the texts of this file and of those it includes.
        named_at: the location that refers to the file, for error messages.
        may_be_empty: accept a space without legal designs, in order to explain it.

    Raises:
        SpecErrors: the files have errors; contains each of them.
        SpecError: the space has no legal design, or none was found.
    """
    where = f"{shown(path)}:1"
    space = _space(files, where, lambda fragments: fragments.at(path, named_at))
    if not may_be_empty:
        check_satisfiable(space, where)
    return space


@dataclass(frozen=True, kw_only=True)
class LegibleSpace:
    """Valid part of a space whose files may have errors, for further checks of a study.

    A ``partial`` space has only the parameters without errors, and no rules; ``hides`` returns true
    for a name that may be missing from it because of an error. An ``empty`` space has no legal
    design.
    """

    space: DesignSpace
    hides: Callable[[str], bool]
    partial: bool = False
    empty: bool = False


def legible_space(
    path: Path, files: Files, mistakes: ErrorCollector, *, named_at: str = ""
) -> LegibleSpace:
    """Read the valid part of a space file; its errors are added to ``mistakes``, not raised."""
    where = f"{shown(path)}:1"
    whole, space = _read_space(files, where, lambda fragments: fragments.at(path, named_at))
    try:
        whole.mistakes.check()
    except DseError as error:
        mistakes.add(error)
        mistakes.skip("whether a design is legal")
        return LegibleSpace(space=space, hides=_hiding(whole), partial=True)
    try:
        check_satisfiable(space, where)
    except DseError as error:
        mistakes.add(error, where)
        return LegibleSpace(space=space, hides=lambda _: False, empty=True)
    return LegibleSpace(space=space, hides=lambda _: False)


def _hiding(whole: SpaceBuilder) -> Callable[[str], bool]:
    """Return a predicate: whether the declaration of a name may have an error that hides it."""
    unread = not whole.parameters
    endings = {name.rpartition(".")[2] for name in whole.lost}

    def hides(name: str) -> bool:
        word = name.partition("[")[0]
        fragment = "." not in word and bool(whole.clouded)
        return unread or fragment or word in endings or whole.hidden(name)

    return hides


def space_document(path: Path, files: Files) -> Mapping[str, Any]:
    """Return the content of a space file as a mapping, without validation.

    Raises:
        SpecError: the file cannot be read, or is a study.
    """
    source = files.source(path)
    if "study" in source.value:
        hint = f"its space is {source.value.get('space')}"
        raise SpecError("this is a study, and no space", where=source.place(["study"]), hint=hint)
    return source.value


def space_from(
    value: Mapping[str, Any], *, beside: Path | None = None, may_be_empty: bool = False
) -> DesignSpace:
    """Build and check a space from a mapping with the keys of a space file.

    A rule that divides by zero or overflows for some combinations follows IEEE 754 there
    (:mod:`dse.schema.space.rule_parser`); one that does so for all combinations is an error.

    Args:
        value: the content of the file; NumPy numbers and arrays, tuples and paths are converted.
        beside: the file or folder that relative paths refer to; by default the working directory.
        may_be_empty: accept a space without legal designs, in order to explain it.

    Raises:
        SpecErrors: the mapping has errors; contains each, located by key, such as
            ``parameters.tp``.
        SpecError: the space has no legal design, or none was found.
    """
    source = source_of(value, beside)
    space = _space(Files(), source.place(), lambda fragments: fragments.of(source))
    if not may_be_empty:
        check_satisfiable(space, source.place())
    return space


def _space(files: Files, where: str, read: Callable[[Fragments], Fragment | None]) -> DesignSpace:
    whole, space = _read_space(files, where, read)
    whole.mistakes.check()
    return space


def _read_space(
    files: Files, where: str, read: Callable[[Fragments], Fragment | None]
) -> tuple[SpaceBuilder, DesignSpace]:
    """Read the files and return their merged entries and the space.

    If there is any error, the space has no constraints and no activity conditions.
    """
    whole = SpaceBuilder()
    fragments = Fragments(files, whole.mistakes)
    fragment = read(fragments)
    if fragment is not None:
        part = IncludedFile(fragment, IncludeScope(), {}, whole=whole, fragments=fragments)
        for statements in part.read():
            statements.add()
    empty = not whole.parameters and not whole.mistakes.errors
    if empty:
        whole.mistakes.add(SpecError("the space has no parameters", where=where))
    rules = Rules(whole)
    rules.check()
    lists = {name: _prepare_condition(one, rules) for name, one in whole.lists.items()}
    sound = not whole.mistakes.errors
    members = {p.name: whole.declared[one] for one in lists for p in lists[one].members}
    return whole, DesignSpace(
        parameters=tuple(whole.parameters.values()),
        conditions=whole.conditions if sound else {},
        constraints=tuple(rule for rule, _ in whole.constraints) if sound else (),
        places={**whole.places, **members, **whole.declared},
        lists=lists,
        data=whole.data,
    )


def _prepare_condition(one: Structured, rules: Rules) -> Structured:
    """Return the compound parameter with its activity condition expanded, or removed if invalid."""
    when: Expression | None = None
    if one.when is not None:
        try:
            when = rules.ready(one.when)
        except (DseError, HiddenError):
            when = None  # reported with the conditions of its members
    return replace(one, when=when)
