"""Legality of a design, and of the completions of a partial one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dse.core.batch import Batch, Column
from dse.core.design import Design
from dse.core.expressions.expression import Compare, Expression
from dse.core.inspection.explain import (
    Rule,
    contradiction,
    draw_legal,
    holds,
    narrow_space,
    place_of,
    rules_of,
    suspects,
)
from dse.core.parameter import Real, describe
from dse.core.space import Space
from dse.core.values import Value
from dse.errors import DesignError, nearest


@dataclass(frozen=True, slots=True, kw_only=True)
class Why:
    """Evidence for or against the designs with some given values.

    ``left`` is how many legal ones there are, ``None`` where they cannot be counted; ``example``
    is one of them. If there is none, ``against`` holds the rules that rule them out: for a whole
    design every rule that it breaks, else a minimal contradiction. If ``left`` is ``None`` as
    well, none was found and nothing is proved: ``against`` is what may rule them out.
    """

    whole: bool
    left: int | None
    example: Design | None
    against: tuple[Rule, ...] = ()


def why(space: Space, values: Mapping[str, Value]) -> Why:
    """Check whether the values are those of a legal design, or part of one, with reasons.

    Raises:
        DesignError: there is no such parameter, or it cannot have this value.
    """
    check_values(space, values)
    if _is_whole(space, values):
        broken = _broken(space, values)
        design = None if broken else space.batch([values]).design(0)
        return Why(whole=True, left=0 if broken else 1, example=design, against=broken)
    part = narrow_space(space, values)
    left = part.count()
    if left == 0:
        return Why(whole=False, left=0, example=None, against=contradiction(space, values))
    try:
        found = draw_legal(part, np.random.default_rng(0))
    except DesignError:
        known = part.legal.witness()
        if len(known):
            return Why(whole=False, left=left, example=space.batch([known.design(0)]).design(0))
        return Why(whole=False, left=None, example=None, against=suspects(space, values))
    return Why(whole=False, left=left, example=space.batch([found]).design(0))


def sides(rule: Rule, values: Mapping[str, Value]) -> str:
    """Return the two sides of a comparison for a design: ``32 == 64``; otherwise empty."""
    node = rule.expression.node
    if rule.kind != "constraint" or not isinstance(node, Compare):
        return ""
    columns = {name: Column.of([values.get(name)]) for name in rule.names}
    told = [Expression("", operand).values(columns, 1) for operand in node.operands]
    if any(side.absent is not None and side.absent[0] for side in told):
        return ""
    come = [_plain(side.values[0]) for side in told]
    words = [f"{v:.6g}" if isinstance(v, float) else str(v) for v in come]
    if len(set(words)) < len(set(come)):
        words = [str(value) for value in come]
    links = zip(node.operators, words[1:], strict=True)
    return " ".join([words[0], *(f"{operator} {word}" for operator, word in links)])


def obstacle(space: Space) -> str | None:
    """Return the reason that the legal designs cannot be counted; ``None`` if they can."""
    if space.count() is not None:
        return None
    reals = [parameter.name for parameter in space.parameters if isinstance(parameter, Real)]
    if reals:
        return f"{_some(reals)} {'is a real parameter' if len(reals) == 1 else 'are real'}"
    names = next(group.names for group in space.legal.components if group.count is None)
    return f"the rules between {_some(names)} are too closely knit"


def _row(space: Space, values: Mapping[str, Value]) -> Batch:
    return Batch({p.name: Column.of([values.get(p.name)]) for p in space.parameters}, 1)


def _is_whole(space: Space, values: Mapping[str, Value]) -> bool:
    """True if every parameter that the values make active has one."""
    row = _row(space, values)
    conditions = {rule.parameter: rule for rule in rules_of(space, {}) if rule.kind == "condition"}
    return all(
        p.name in values or (p.name in conditions and not holds(conditions[p.name], row))
        for p in space.parameters
    )


def _broken(space: Space, values: Mapping[str, Value]) -> tuple[Rule, ...]:
    """The rules that a whole design breaks: conditions first, as in :meth:`Space.check`."""
    row = _row(space, values)
    rules = rules_of(space, {})
    mine = [rule for rule in rules if rule.kind == "condition" and rule.parameter in values]
    broken = [rule for rule in mine if not holds(rule, row)]
    return (*broken, *(r for r in rules if r.kind == "constraint" and not holds(r, row)))


def check_values(space: Space, values: Mapping[str, Value]) -> None:
    """Nothing, if each is a value of a parameter; they need not be legal together.

    Raises:
        DesignError: there is no such parameter, or it cannot have this value.
    """
    for name, value in values.items():
        if name not in space.by_name:
            raise DesignError(f"there is no parameter {name!r}", hint=nearest(name, space.by_name))
        if value not in space.by_name[name]:
            raise DesignError(
                f"{name} cannot be {value!r}",
                where=place_of(space, name),
                hint=f"legal: {describe(space.by_name[name])}",
            )


def _some(names: Sequence[str]) -> str:
    """Up to three names, and how many more."""
    more = [f"{len(names) - 3} more"] if len(names) > 3 else []
    *front, last = [*names[:3], *more]
    return f"{', '.join(front)} and {last}" if front else last


def _plain(value: object) -> object:
    return value.item() if isinstance(value, np.generic) else value
