"""In which order the parameters of a group are set when its legal set is listed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dse.core.expression import Expression, Node, children
from dse.core.parameter import Finite
from dse.core.solving.residual import names_of

_TERMS = 4_000
"""So many terms of a rule are looked at."""


def listing_order(
    parameters: Sequence[Finite],
    conditions: Mapping[str, Expression],
    constraints: Sequence[Expression],
) -> list[int]:
    """Parents before what they activate; then whatever lets most rules be applied soonest.

    That is the parameter with the fewest others missing from some rule that reads it, and of
    those the one with the fewest values.
    """
    names = [parameter.name for parameter in parameters]
    rank = {name: turn for turn, name in enumerate(dependence_order(names, conditions))}
    sizes = {parameter.name: len(parameter.values) for parameter in parameters}
    missing = [set(names) & rank.keys() for rule in constraints for names in _ties(rule.node)]
    rules_of: dict[str, list[int]] = {name: [] for name in names}
    for place, rule in enumerate(missing):
        for name in rule:
            rules_of[name].append(place)
    parents = {name: set(conditions[name].names) & rank.keys() for name in conditions}
    left, order = set(names), list[str]()
    while left:
        ready = [name for name in left if not parents.get(name)]
        best = min(
            ready,
            key=lambda name: (
                min((len(missing[place]) for place in rules_of[name]), default=10**9),
                sizes[name],
                rank[name],
            ),
        )
        left.discard(best)
        order.append(best)
        for place in rules_of[best]:
            missing[place].discard(best)
        for waiting in parents.values():
            waiting.discard(best)
    places = {name: place for place, name in enumerate(names)}
    return [places[name] for name in order]


def _ties(node: Node) -> list[frozenset[str]]:
    """The names of the rule, and of each of its terms: what is multiplied is set together.

    In ``sum(bits * acts) <= 80`` a layer's two widths make one number, if the second follows the
    first.
    """
    ties = [names_of(node)]
    waiting = list(children(node))
    for _ in range(_TERMS):
        if not waiting:
            break
        part = waiting.pop()
        names = names_of(part)
        if len(names) > 1:
            waiting += children(part)
            if len(names) < len(ties[0]):
                ties.append(names)
    return ties


def dependence_order(names: Sequence[str], conditions: Mapping[str, Expression]) -> list[str]:
    """The names, each after all that its condition reads."""
    order: dict[str, None] = {}
    known = set(names)
    for name in names:
        waiting = [name]
        while waiting:
            rule = conditions.get(waiting[-1])
            parents = sorted((rule.names & known) - order.keys() - {waiting[-1]}) if rule else []
            if parents and len(waiting) <= len(known):  # a circle would never end
                waiting.append(parents[0])
            else:
                order[waiting.pop()] = None
    return list(order)
