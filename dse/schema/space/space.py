"""From space files, or a mapping of the same shape, to the space: all read, every rule checked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dse.core.compound_parameters import Structured
from dse.core.expressions.expression import Expression
from dse.core.space import Space
from dse.errors import DseError, SpecError
from dse.schema.space.builder import SpaceBuilder
from dse.schema.space.file import Fragment, Fragments
from dse.schema.space.include import IncludedFile, IncludeScope
from dse.schema.space.rule_parser import Rules
from dse.schema.space.rules.satisfiable import check_satisfiable
from dse.schema.yaml.errors import ErrorCollector, HiddenError
from dse.schema.yaml.files import Files
from dse.schema.yaml.python_source import source_of
from dse.schema.yaml.source import shown


def space_of(path: Path, files: Files, *, named_at: str = "", may_be_empty: bool = False) -> Space:
    """The space that the file at ``path`` describes, with all that it includes.

    Args:
        path: the file.
        files: where its text and those of what it includes come from.
        named_at: the place that names the file.
        may_be_empty: a space without any legal design is no mistake: it is to be explained.

    Raises:
        SpecErrors: with every mistake found in the files.
    """
    where = f"{shown(path)}:1"
    space = _space(files, where, lambda fragments: fragments.at(path, named_at))
    if not may_be_empty:
        check_satisfiable(space, where)
    return space


@dataclass(frozen=True, kw_only=True)
class LegibleSpace:
    """Readable part of a space.

    One that is ``partial`` has only the parameters that have no mistake, and no rules; ``hides``
    is true for a name that it might have otherwise. One that is ``empty`` has no legal design.
    """

    space: Space
    hides: Callable[[str], bool]
    partial: bool = False
    empty: bool = False


def legible_space(
    path: Path, files: Files, mistakes: ErrorCollector, *, named_at: str = ""
) -> LegibleSpace:
    """The space of a file as far as its mistakes, which are kept, leave it."""
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
    """Return a predicate: true if a name, or one that ends in it, may be an unreadable one."""
    unread = not whole.parameters
    endings = {name.rpartition(".")[2] for name in whole.lost}

    def hides(name: str) -> bool:
        word = name.partition("[")[0]
        fragment = "." not in word and bool(whole.clouded)
        return unread or fragment or word in endings or whole.hidden(name)

    return hides


def space_document(path: Path, files: Files) -> Mapping[str, Any]:
    """Return the content of a space file, before any of it is checked.

    Raises:
        SpecError: it cannot be read, or is a study.
    """
    source = files.source(path)
    if "study" in source.value:
        hint = f"its space is {source.value.get('space')}"
        raise SpecError("this is a study, and no space", where=source.place(["study"]), hint=hint)
    return source.value


def space_from(
    value: Mapping[str, Any], *, beside: Path | None = None, may_be_empty: bool = False
) -> Space:
    """The space that a mapping of the shape of a space file describes.

    A rule that divides by zero for some combinations, or overflows, is decided there by the
    numbers of IEEE 754 (:mod:`dse.schema.space.rules.definitions`); one that does so for all is a
    mistake.

    Args:
        value: what the YAML would say; numbers of numpy, tuples and paths are as good as theirs.
        beside: the file or folder that relative paths are relative to; by default, where the
            program runs.
        may_be_empty: a space without any legal design is no mistake: it is to be explained.

    Raises:
        SpecErrors: with every mistake found; their places are keys, such as ``parameters.tp``.
    """
    source = source_of(value, beside)
    space = _space(Files(), source.place(), lambda fragments: fragments.of(source))
    if not may_be_empty:
        check_satisfiable(space, source.place())
    return space


def _space(files: Files, where: str, read: Callable[[Fragments], Fragment | None]) -> Space:
    whole, space = _read_space(files, where, read)
    whole.mistakes.check()
    return space


def _read_space(
    files: Files, where: str, read: Callable[[Fragments], Fragment | None]
) -> tuple[SpaceBuilder, Space]:
    """Return the contents of the files, and the space; without rules if there is a mistake."""
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
    return whole, Space(
        parameters=tuple(whole.parameters.values()),
        conditions=whole.conditions if sound else {},
        constraints=tuple(rule for rule, _ in whole.constraints) if sound else (),
        places={**whole.places, **members, **whole.declared},
        lists=lists,
        data=whole.data,
    )


def _prepare_condition(one: Structured, rules: Rules) -> Structured:
    """Return the parameter with its condition over single parameters, in coherent units.

    The condition is ``None`` where it has a mistake.
    """
    when: Expression | None = None
    if one.when is not None:
        try:
            when = rules.ready(one.when)
        except (DseError, HiddenError):
            when = None  # told with the conditions of its members
    return replace(one, when=when)
