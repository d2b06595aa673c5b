"""From space files, or a mapping of the same shape, to the space: all read, every rule checked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from dse.core.expression import Expression
from dse.core.space import Space
from dse.core.structured import Structured
from dse.errors import DseError, SpecError
from dse.schema.files import Files
from dse.schema.mistakes import HiddenError
from dse.schema.plain import source_of
from dse.schema.source import shown
from dse.schema.spaces.fragment import Fragment, Fragments
from dse.schema.spaces.part import Part, Place
from dse.schema.spaces.rules import Rules
from dse.schema.spaces.satisfiable import check_satisfiable
from dse.schema.spaces.whole import Whole


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


def space_document(path: Path, files: Files) -> Mapping[str, Any]:
    """What a space file says, before any of it is checked.

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
    numbers of IEEE 754 (:mod:`dse.schema.spaces.defined`); one that does so for all is a mistake.

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
    whole = Whole()
    fragments = Fragments(files, whole.mistakes)
    fragment = read(fragments)
    if fragment is not None:
        part = Part(fragment, Place(), {}, whole=whole, fragments=fragments)
        for statements in part.read():
            statements.add()
    empty = not whole.parameters and not whole.mistakes.errors
    if empty:
        whole.mistakes.add(SpecError("the space has no parameters", where=where))
    rules = Rules(whole)
    rules.check()
    lists = {name: _told(one, rules) for name, one in whole.lists.items()}
    whole.mistakes.check()
    members = {p.name: whole.declared[one] for one in lists for p in lists[one].members}
    return Space(
        parameters=tuple(whole.parameters.values()),
        conditions=whole.conditions,
        constraints=tuple(rule for rule, _ in whole.constraints),
        places={**whole.places, **members, **whole.declared},
        lists=lists,
        data=whole.data,
    )


def _told(one: Structured, rules: Rules) -> Structured:
    """The structured parameter with its condition over single parameters, in coherent units."""
    when: Expression | None = None
    if one.when is not None:
        try:
            when = rules.ready(one.when)
        except (DseError, HiddenError):
            when = None  # told with the conditions of its members
    return replace(one, when=when)
