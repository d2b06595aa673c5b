"""Satisfiability of a space: a legal design or, failing that, the rules in conflict."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from dse.core.expressions.expression import Compare, Expression
from dse.core.inspection.explain import contradiction, draw_legal
from dse.core.legal_set.component import Component
from dse.core.parameter import Real, describe
from dse.core.space import Space
from dse.errors import DesignError, SpecError

_SHOWN = 100
_OTHERS = 4
_ALONE = 50
"""So many rules are tried on their own, which is sooner done than a search through all."""


def check_satisfiable(space: Space, where: str) -> None:
    """Nothing, if there is a legal design.

    Raises:
        SpecError: there is none, or none was found; it names the rule that leaves none, beside
            which others.
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


def _against(space: Space) -> list[Expression]:
    """A rule that cannot hold, or a minimal set of rules that cannot hold together."""
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
    space: Space, rules: list[Expression], where: str, *, proved: bool = True
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


def _hint_equation(space: Space, rule: Expression) -> list[str]:
    """Return a hint on an equation of reals, which randomly sampled designs do not satisfy."""
    real = [name for name in rule.names if isinstance(space.by_name[name], Real)]
    if not real or not isinstance(rule.node, Compare) or "==" not in rule.node.operators:
        return []
    return ["reals that are drawn do not meet an equation: use a simplex, or an inequality"]


def _elusive(space: Space, knit: Component, where: str) -> SpecError:
    """Return the error for a group whose legal combinations are too rare, or do not exist."""
    names = ", ".join(knit.names[:_OTHERS]) + (" ..." if len(knit.names) > _OTHERS else "")
    rules = list(knit.constraints)
    return SpecError(
        f"no legal design was found in {knit.tries:,} draws and a search, which proves nothing: "
        f"the rules between {names} are too closely knit to be solved",
        where=space.places.get(rules[0].text, where) if rules else where,
        hint="; ".join(_list_rules(space, rules)).removeprefix("beside "),
    )


def _domains(space: Space, rule: Expression) -> list[str]:
    names = sorted(rule.names)[:_OTHERS]
    return [f"{name}: {describe(space.by_name[name])[:_SHOWN]}" for name in names]


def _list_rules(space: Space, others: list[Expression]) -> list[str]:
    told = [f"{rule.text[:_SHOWN]!r} ({space.places.get(rule.text, '')})" for rule in others]
    more = [f"{len(others) - _OTHERS} more rules"] if len(others) > _OTHERS else []
    return [f"beside {' and '.join(told[:_OTHERS] + more)}"] if told else []


def _order(space: Space) -> Callable[[Expression], int]:
    places = {rule.text: place for place, rule in enumerate(space.constraints)}
    return lambda rule: places.get(rule.text, -1)


def _prefix(space: Space) -> list[Expression]:
    """The first rule with which none is found any more, by halving."""
    low, high = 0, len(space.constraints)
    while low < high:
        middle = (low + high) // 2
        part = replace(space, constraints=space.constraints[: middle + 1])
        if part.count() != 0 and _has_design(part):
            low = middle + 1
        else:
            high = middle
    return list(space.constraints[low : low + 1])


def _has_design(space: Space) -> bool:
    try:
        draw_legal(space, np.random.default_rng(0))
    except DesignError:
        return len(space.legal.witness()) > 0
    return True
