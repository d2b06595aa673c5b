"""Compiler from parameters and rules to a legal set, by group of parameters that rules couple."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dse.core.expressions.expression import Expression
from dse.core.legal_set.legal_set import Legal
from dse.core.legal_set.solution import solve_component
from dse.core.parameter import Finite, Parameter, Real
from dse.errors import DesignError


def compile_legal(
    parameters: Sequence[Parameter],
    conditions: Mapping[str, Expression],
    constraints: Sequence[Expression],
    simplexes: Sequence[frozenset[str]] = (),
) -> Legal:
    """Return the set of legal designs of these parameters and rules, ready for sampling.

    Args:
        parameters: the parameters of the space.
        conditions: activity condition of each parameter that has one.
        constraints: the rules.
        simplexes: sets of real parameters, by name, whose values sum to 1.

    Raises:
        DesignError: the condition of a finite parameter reads a real one.
    """
    finite = [parameter for parameter in parameters if not isinstance(parameter, Real)]
    reals = tuple(parameter for parameter in parameters if isinstance(parameter, Real))
    real_names = {real.name for real in reals}
    plain = [rule for rule in constraints if not rule.names & real_names]
    mixed = tuple(rule for rule in constraints if rule.names & real_names)
    on_reals = [name for name, rule in conditions.items() if rule.names & real_names]
    if set(on_reals) - real_names:
        raise DesignError(
            f"{min(set(on_reals) - real_names)} cannot be active by the value of a real parameter",
            hint="give the real parameter a step, so that it has finitely many values",
        )
    inner = {name: rule for name, rule in conditions.items() if name not in real_names}
    components = tuple(
        solve_component(
            group,
            {p.name: inner[p.name] for p in group if p.name in inner},
            [rule for rule in plain if rule.names & {p.name for p in group}],
        )
        for group in _groups(finite, inner, plain)
    )
    constant = tuple(rule for rule in plain if not rule.names)
    if components and not all(rule.holds({}, 1, unknown=True)[0] for rule in constant):
        first = components[0]
        emptied = solve_component(first.parameters, {}, (*first.constraints, *constant))
        components = (emptied, *components[1:])
    elif not components:
        mixed = (*mixed, *constant)
    return Legal(
        components=components,
        reals=reals,
        conditions=conditions,
        mixed=mixed,
        simplexes=tuple(
            tuple(place for place, real in enumerate(reals) if real.name in names)
            for names in simplexes
        ),
    )


def _groups(
    parameters: Sequence[Finite],
    conditions: Mapping[str, Expression],
    constraints: Sequence[Expression],
) -> list[list[Finite]]:
    """Return the parameters in groups that rules couple, directly or through others."""
    root = {parameter.name: parameter.name for parameter in parameters}

    def find(name: str) -> str:
        while root[name] != name:
            root[name] = root[root[name]]
            name = root[name]
        return name

    ties = [rule.names for rule in constraints]
    ties += [rule.names | {name} for name, rule in conditions.items()]
    for tie in ties:
        first, *others = sorted(tie & root.keys()) or [""]
        for other in others:
            root[find(other)] = find(first)
    groups: dict[str, list[Finite]] = {}
    for parameter in parameters:
        groups.setdefault(find(parameter.name), []).append(parameter)
    return list(groups.values())
