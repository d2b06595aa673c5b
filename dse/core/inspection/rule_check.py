"""Legality check of a design, complete or partial, with the reasons if it is illegal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dse.core.batch import Batch, Column
from dse.core.design import Design
from dse.core.expressions.expression import Expression
from dse.core.expressions.syntax import Compare
from dse.core.inspection.rule_conflicts import (
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
from dse.core.space import DesignSpace
from dse.core.values import Value
from dse.errors import DesignError, nearest


@dataclass(frozen=True, slots=True, kw_only=True)
class Why:
    """Whether legal designs with some given parameter values exist, with an example or reasons.

    ``whole`` is true if the values are a complete design. ``left`` is the number of legal designs
    with these values, ``None`` if they cannot be counted; ``example`` is one of them. If there is
    no legal design with these values, ``against`` holds the rules that exclude it: for a complete
    design, every rule that it violates; for a partial one, a minimal contradiction. If both
    ``left`` and ``example`` are ``None``, no legal design was found but nothing is proved:
    ``against`` holds the rules that may exclude one.
    """

    whole: bool
    left: int | None
    example: Design | None
    against: tuple[Rule, ...] = ()


def why(space: DesignSpace, values: Mapping[str, Value]) -> Why:
    """Check whether values form a legal design, or can be completed to one; return the reasons.

    Raises:
        DesignError: a parameter does not exist, or cannot have its value.
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
    """Return a comparison with its two sides evaluated, such as ``32 == 64``, as text.

    The text is empty if the rule is not a comparison.
    """
    node = rule.expression.node
    if rule.kind != "constraint" or not isinstance(node, Compare):
        return ""
    columns = {name: Column.of([values.get(name)]) for name in rule.names}
    columns_of_operands = [Expression("", operand).values(columns, 1) for operand in node.operands]
    if any(side.absent is not None and side.absent[0] for side in columns_of_operands):
        return ""
    come = [_plain(side.values[0]) for side in columns_of_operands]
    words = [f"{v:.6g}" if isinstance(v, float) else str(v) for v in come]
    if len(set(words)) < len(set(come)):
        words = [str(value) for value in come]
    links = zip(node.operators, words[1:], strict=True)
    return " ".join([words[0], *(f"{operator} {word}" for operator, word in links)])


def obstacle(space: DesignSpace) -> str | None:
    """Return why the legal designs cannot be counted, as text; ``None`` if they can."""
    if space.count() is not None:
        return None
    reals = [parameter.name for parameter in space.parameters if isinstance(parameter, Real)]
    if reals:
        return f"{_some(reals)} {'is a real parameter' if len(reals) == 1 else 'are real'}"
    names = next(group.names for group in space.legal.components if group.count is None)
    return f"the rules between {_some(names)} are too closely knit"


def _row(space: DesignSpace, values: Mapping[str, Value]) -> Batch:
    return Batch({p.name: Column.of([values.get(p.name)]) for p in space.parameters}, 1)


def _is_whole(space: DesignSpace, values: Mapping[str, Value]) -> bool:
    """Return whether every parameter that is active under the values has a value."""
    row = _row(space, values)
    conditions = {rule.parameter: rule for rule in rules_of(space, {}) if rule.kind == "condition"}
    return all(
        p.name in values or (p.name in conditions and not holds(conditions[p.name], row))
        for p in space.parameters
    )


def _broken(space: DesignSpace, values: Mapping[str, Value]) -> tuple[Rule, ...]:
    """Return the rules that a design violates: conditions of parameters first, then constraints."""
    row = _row(space, values)
    rules = rules_of(space, {})
    mine = [rule for rule in rules if rule.kind == "condition" and rule.parameter in values]
    broken = [rule for rule in mine if not holds(rule, row)]
    return (*broken, *(r for r in rules if r.kind == "constraint" and not holds(r, row)))


def check_values(space: DesignSpace, values: Mapping[str, Value]) -> None:
    """Raise DesignError unless each value is in its parameter's domain; rules are not checked.

    Raises:
        DesignError: a parameter does not exist, or cannot have its value.
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
    """Return names as text: at most the first three, and the number of further names."""
    more = [f"{len(names) - 3} more"] if len(names) > 3 else []
    *front, last = [*names[:3], *more]
    return f"{', '.join(front)} and {last}" if front else last


def _plain(value: object) -> object:
    return value.item() if isinstance(value, np.generic) else value
