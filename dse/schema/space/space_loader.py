"""Construction of a search space from its files, and a check that it has a legal design."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from dse.core.compound_parameters import Structured
from dse.core.expressions.expression import Expression
from dse.core.expressions.syntax import Compare
from dse.core.inspection.rule_conflicts import contradiction, draw_legal
from dse.core.legal_set.component import Component
from dse.core.parameter import Real, describe
from dse.core.space import DesignSpace
from dse.errors import DesignError, DseError, SpecError
from dse.schema.space.builder import SpaceBuilder
from dse.schema.space.file import Fragment, Fragments
from dse.schema.space.include import IncludedFile, IncludeScope
from dse.schema.space.rule_parser import Rules
from dse.schema.yaml.files import Files
from dse.schema.yaml.python_source import source_of
from dse.schema.yaml.source import shown
from dse.schema.yaml.validation import ErrorCollector, HiddenError


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

    If there is any error, the returned space has no constraints and no activity conditions.
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


_SHOWN = 100
_OTHERS = 4
_ALONE = 50
"""Maximum number of rules tested singly before the search for a minimal conflict set.

Testing one rule alone is cheaper than that search.
"""


def check_satisfiable(space: DesignSpace, where: str) -> None:
    """Check that the space has at least one legal design.

    Raises:
        SpecError: the space has no legal design, or none was found; the message names the rule that
            excludes the last designs, and the hint the other rules of the conflict.
    """
    count = space.count()
    if count == 0:
        raise _impossible(space, _against(space), where)
    if count is not None or _has_design(space):
        return
    knit = next((group for group in space.legal.components if group.count is None), None)
    if knit is not None:
        raise _elusive(space, knit, where)
    raise _impossible(space, _prefix(space), where, proved=False)


def _against(space: DesignSpace) -> list[Expression]:
    """Return a minimal set of rules that cannot hold together; a single one if that suffices."""
    groups = [group for group in space.legal.components if group.count == 0]
    group = min(groups, key=lambda one: len(one.parameters), default=None)
    if group is not None and group.constraints:
        space = replace(
            space,
            parameters=group.parameters,
            conditions=group.conditions,
            constraints=group.constraints,
            lists={},
        )
    for rule in space.constraints[:_ALONE]:
        if replace(space, constraints=(rule,)).count() == 0:
            return [rule]
    proof = contradiction(space)
    return [rule.expression for rule in proof if rule.kind == "constraint"]


def _impossible(
    space: DesignSpace, rules: list[Expression], where: str, *, proved: bool = True
) -> SpecError:
    none = "no legal design is left" if proved else "no legal design was found"
    if not rules:
        return SpecError("the space has no legal design" if proved else none, where=where)
    *others, last = sorted(rules, key=_order(space))
    return SpecError(
        f"{none} once {last.text!r} is to hold",
        where=space.places.get(last.text, where),
        hint="; ".join(
            [*_hint_equation(space, last), *_domains(space, last), *_list_rules(space, others)]
        ),
    )


def _hint_equation(space: DesignSpace, rule: Expression) -> list[str]:
    """Return a hint if the rule is an equation over reals, which samples almost never satisfy."""
    real = [name for name in rule.names if isinstance(space.by_name[name], Real)]
    if not real or not isinstance(rule.node, Compare) or "==" not in rule.node.operators:
        return []
    return ["sampled reals do not satisfy an equation: use a simplex, or an inequality"]


def _elusive(space: DesignSpace, knit: Component, where: str) -> SpecError:
    """Return the error for coupled parameters of which the search found no legal combination."""
    names = ", ".join(knit.names[:_OTHERS]) + (" ..." if len(knit.names) > _OTHERS else "")
    rules = list(knit.constraints)
    return SpecError(
        f"no legal design was found in {knit.tries:,} draws and a search, though one may exist: "
        f"the rules that link {names} are too tightly coupled to be solved",
        where=space.places.get(rules[0].text, where) if rules else where,
        hint="; ".join(_list_rules(space, rules)).removeprefix("together with "),
    )


def _domains(space: DesignSpace, rule: Expression) -> list[str]:
    names = sorted(rule.names)[:_OTHERS]
    return [f"{name}: {describe(space.by_name[name])[:_SHOWN]}" for name in names]


def _list_rules(space: DesignSpace, others: list[Expression]) -> list[str]:
    listed = [f"{rule.text[:_SHOWN]!r} ({space.places.get(rule.text, '')})" for rule in others]
    more = [f"{len(others) - _OTHERS} more rules"] if len(others) > _OTHERS else []
    return [f"together with {' and '.join(listed[:_OTHERS] + more)}"] if listed else []


def _order(space: DesignSpace) -> Callable[[Expression], int]:
    places = {rule.text: place for place, rule in enumerate(space.constraints)}
    return lambda rule: places.get(rule.text, -1)


def _prefix(space: DesignSpace) -> list[Expression]:
    """Return the first constraint, in file order, with which no legal design is found any more.

    The constraint is found by bisection over the length of the list of constraints.
    """
    low, high = 0, len(space.constraints)
    while low < high:
        middle = (low + high) // 2
        part = replace(space, constraints=space.constraints[: middle + 1])
        if part.count() != 0 and _has_design(part):
            low = middle + 1
        else:
            high = middle
    return list(space.constraints[low : low + 1])


def _has_design(space: DesignSpace) -> bool:
    try:
        draw_legal(space, np.random.default_rng(0))
    except DesignError:
        return len(space.legal.witness()) > 0
    return True
