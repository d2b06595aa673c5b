"""Explanations of infeasible designs and spaces: minimal sets of contradictory rules."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from dse.core.batch import Batch
from dse.core.design import Design
from dse.core.expressions.expression import Expression
from dse.core.expressions.syntax import Absent, Name
from dse.core.parameter import Choice, Integer, Ordinal, Parameter, Real
from dse.core.space import DesignSpace
from dse.core.values import Value
from dse.errors import DesignError

_RANK = {"setting": 0, "constraint": 1, "condition": 2}
"""Preference among contradictions: set values before constraints before conditions."""

_TRIES = 1_000
"""Number of designs drawn at once to find a legal one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """Requirement on a legal design: a constraint, a parameter's condition, or a set value.

    A condition states when a parameter is active; a set value is a parameter value that the caller
    fixes. ``parameter`` is the parameter that has the condition or value; ``where`` is the file and
    line where the rule is stated.
    """

    kind: Literal["constraint", "condition", "setting"]
    text: str
    where: str = ""
    parameter: str = ""
    expression: Expression
    value: Value | None = None

    @property
    def names(self) -> frozenset[str]:
        """Names of the parameters that the rule constrains or reads."""
        return self.expression.names | {self.parameter} - {""}


Oracle = Callable[[DesignSpace, Sequence[Rule]], bool]
"""Test of whether no design is assumed to satisfy some rules of a space."""


def contradiction(
    space: DesignSpace, values: Mapping[str, Value] | None = None
) -> tuple[Rule, ...]:
    """Return a minimal set of rules and set values that contradict one another.

    If any rule or value of the set is removed, the remaining ones are no longer proved
    contradictory. The set is empty if legal designs exist, or if their absence cannot be proved, as
    with rules over real parameters or over too many coupled parameters.

    Source:
        Junker: QuickXplain: Preferred Explanations and Relaxations for Over-Constrained Problems,
        AAAI 2004.
    """
    rules = rules_of(space, values or {})
    false = [rule for rule in rules if not rule.names and not holds(rule, Batch({}, 1))]
    if false:
        return (false[0],)
    if not _is_empty(space, rules):
        return ()
    groups = _keeping(space, rules).legal.components
    empty = next(group.names for group in groups if group.count == 0)
    return _minimal(space, [rule for rule in rules if rule.names & set(empty)], _is_empty)


def suspects(space: DesignSpace, values: Mapping[str, Value] | None = None) -> tuple[Rule, ...]:
    """Return a minimal set of rules and set values that no randomly drawn design satisfies.

    This does not prove a contradiction: a few designs that were not drawn may satisfy them. The set
    is empty if some drawn design satisfies all rules and set values.
    """
    rules = rules_of(space, values or {})
    return _minimal(space, rules, _is_elusive) if _is_elusive(space, rules) else ()


def draw_legal(space: DesignSpace, rng: np.random.Generator) -> Design:
    """Return a random legal design, even if few of the randomly drawn candidates are legal.

    Raises:
        DesignError: no legal design was found.
    """
    return space.sample(_TRIES if space.legal.mixed else 1, rng).design(0)


def narrow_space(space: DesignSpace, values: Mapping[str, Value]) -> DesignSpace:
    """Return the subspace in which the given parameters are active and have the given values."""
    parameters = [_only(p, values[p.name]) if p.name in values else p for p in space.parameters]
    present = [_present(name) for name in values if name in space.conditions]
    return replace(space, parameters=tuple(parameters), constraints=(*space.constraints, *present))


def constraint_rules(space: DesignSpace) -> tuple[Rule, ...]:
    """Return the constraints of the space as rules, each with the file and line that states it."""
    return tuple(
        Rule(kind="constraint", text=one.text, where=place_of(space, one.text), expression=one)
        for one in space.constraints
    )


def holds(rule: Rule, row: Batch) -> bool:
    """Return whether the only design of a batch satisfies the rule."""
    return bool(rule.expression.holds(row.columns, 1, unknown=rule.kind != "condition")[0])


def place_of(space: DesignSpace, name: str) -> str:
    """Return the file and line where a parameter or a rule is stated; empty if unknown.

    For a member of a list, return the file and line of the list.
    """
    return space.places.get(name) or space.places.get(name.partition("[")[0], "")


def rules_of(space: DesignSpace, values: Mapping[str, Value]) -> tuple[Rule, ...]:
    """Return the set values, the constraints and the conditions as rules, in this order."""
    settings = [
        Rule(
            kind="setting",
            text=f"{name} = {value}",
            parameter=name,
            expression=_present(name),
            value=value,
        )
        for name, value in values.items()
    ]
    conditions = [
        Rule(
            kind="condition",
            text=f"{name} exists only when {one.text}",
            where=place_of(space, name),
            parameter=name,
            expression=one,
        )
        for name, one in space.conditions.items()
    ]
    return (*settings, *constraint_rules(space), *conditions)


def _minimal(space: DesignSpace, rules: Sequence[Rule], is_empty: Oracle) -> tuple[Rule, ...]:
    simplest = sorted(rules, key=lambda rule: (_RANK[rule.kind], len(rule.names)))
    found = _conflict(space, (), (), simplest, is_empty)
    return tuple(rule for rule in rules if any(rule is one for one in found))


def _conflict(
    space: DesignSpace,
    held: Sequence[Rule],
    added: Sequence[Rule],
    rules: Sequence[Rule],
    is_empty: Oracle,
) -> tuple[Rule, ...]:
    """Return a minimal subset of ``rules`` that contradicts ``held``: the recursion of QuickXplain.

    ``added`` are the rules that were added to ``held`` last.
    """
    if added and is_empty(space, held):
        return ()
    if len(rules) == 1:
        return tuple(rules)
    half = len(rules) // 2
    first, second = rules[:half], rules[half:]
    late = _conflict(space, (*held, *first), first, second, is_empty)
    early = _conflict(space, (*held, *late), late, first, is_empty)
    return (*early, *late)


def _is_empty(space: DesignSpace, rules: Sequence[Rule]) -> bool:
    """Return whether it is proved that no design of the space satisfies the rules."""
    try:
        return _keeping(space, rules).count() == 0
    except DesignError:  # too large without the other rules
        return False


def _is_elusive(space: DesignSpace, rules: Sequence[Rule]) -> bool:
    """Return whether no randomly drawn design of the space satisfies the rules."""
    try:
        draw_legal(_keeping(space, rules), np.random.default_rng(0))
    except DesignError:
        return True
    return False


def _keeping(space: DesignSpace, rules: Sequence[Rule]) -> DesignSpace:
    """Return the space with only these rules as constraints and only the parameters they name.

    A parameter whose condition is not among the rules may be active or inactive, independently of
    all others.
    """
    names = frozenset[str]().union(*(rule.names for rule in rules))
    values = {rule.parameter: rule.value for rule in rules if rule.kind == "setting"}
    kept = {rule.parameter: rule.expression for rule in rules if rule.kind == "condition"}
    parameters: list[Parameter] = []
    conditions: dict[str, Expression] = {}
    for parameter in space.parameters:
        name = parameter.name
        value = values.get(name)
        if name not in names:
            continue
        parameters.append(parameter if value is None else _only(parameter, value))
        if name in kept:
            conditions[name] = kept[name]
        elif name in space.conditions and value is None:
            switch = f"{name} is there"
            parameters.append(Choice(name=switch, values=(False, True)))
            conditions[name] = Expression(switch, Name(switch))
    constraints = [
        rule.expression
        for rule in rules
        if rule.kind == "constraint" or (rule.kind == "setting" and rule.parameter in kept)
    ]
    texts = {rule.text for rule in rules}
    return DesignSpace(
        parameters=tuple(parameters),
        conditions=conditions,
        constraints=tuple(constraints),
        lists={n: one for n, one in space.lists.items() if texts & {r.text for r in one.rules}},
    )


def _only(parameter: Parameter, value: Value) -> Parameter:
    """Return the parameter restricted to this value; a real parameter becomes an ordinal one."""
    match parameter:
        case Choice():
            return replace(parameter, values=(value,))
        case Real():
            assert isinstance(value, int | float)
            return Ordinal(name=parameter.name, values=(float(value),), unit=parameter.unit)
        case Ordinal():
            return replace(parameter, values=tuple(v for v in parameter.values if v == value))
        case Integer():
            assert isinstance(value, int)
            return replace(parameter, low=value, high=value)


def _present(name: str) -> Expression:
    return Expression(f"{name} is not absent", Absent(Name(name), negated=True))
