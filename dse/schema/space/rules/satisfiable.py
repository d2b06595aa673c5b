"""Satisfiability check of a space; an unsatisfiable one is reported with its conflicting rules."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from dse.core.expressions.expression import Expression
from dse.core.expressions.syntax import Compare
from dse.core.inspection.rule_conflicts import contradiction, draw_legal
from dse.core.legal_set.component import Component
from dse.core.parameter import Real, describe
from dse.core.space import DesignSpace
from dse.errors import DesignError, SpecError

_SHOWN = 100
_OTHERS = 4
_ALONE = 50
"""Maximum number of rules tested singly before the search for a minimal conflict set.

Testing one rule alone is cheaper than that search.
"""


def check_satisfiable(space: DesignSpace, where: str) -> None:
    """Check that the space has at least one legal design.

    Raises:
        SpecError: it has none, or none was found; the message names the rule that excludes the
            last designs, and the hint the other rules of the conflict.
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
    """Return the error for coupled parameters for which search found no legal combination."""
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
