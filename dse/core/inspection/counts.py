"""Exact counts of the designs that satisfy some rules, by group of coupled parameters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from dse.core.expressions.expression import Expression
from dse.core.legal_set.component import Component
from dse.core.parameter import Ordinal, Real
from dse.core.space import DesignSpace

Rules = tuple[Expression, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleGroup:
    """Group of parameters that rules couple, directly or through other parameters.

    ``space`` holds the group's parameters and the rules under which its combinations can be
    counted. ``form`` holds the rules that only define the type of a list parameter (order, subset,
    partition). ``unruled`` is the number of combinations that satisfy ``form``, ignoring all other
    rules; ``None`` if it cannot be counted.
    """

    space: DesignSpace
    component: Component
    form: Rules
    unruled: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Weight:
    """Fraction of the unconstrained designs that satisfies some rules of the space.

    The rules in ``left`` are ignored, because designs under these rules cannot be counted.
    """

    share: Fraction
    left: Rules


def groups_of(space: DesignSpace, forms: frozenset[str]) -> tuple[RuleGroup, ...]:
    """Return the sets of parameters that rules couple; rules over real parameters are ignored.

    Args:
        space: the space.
        forms: the texts of the rules that make lists orders, subsets or partitions.
    """
    whole = _countable(space) if space.has_real else space
    return tuple(_group(whole, component, forms) for component in whole.legal.components)


def weight(groups: Sequence[RuleGroup], rules: Rules) -> Weight | None:
    """Return the fraction of unconstrained designs that satisfies the rules.

    The fraction is ``None`` if the designs cannot be counted.

    Args:
        groups: the groups of coupled parameters.
        rules: rules over finite parameters.
    """
    if not all(rule.holds({}, 1, unknown=True)[0] for rule in rules if not rule.names):
        return Weight(share=Fraction(0), left=())
    share, left = Fraction(1), list[Expression]()
    for group in groups:
        count, dropped = _count_group(group, rules)
        if not group.unruled or any(rule is one for rule in dropped for one in group.form):
            return None
        share *= Fraction(count, group.unruled)
        left += dropped
    return Weight(share=share, left=tuple(left))


def without(rules: Rules, others: Rules) -> Rules:
    """Return the rules that are not among ``others``, compared by object identity."""
    known = {id(rule) for rule in others}
    return tuple(rule for rule in rules if id(rule) not in known)


def _group(space: DesignSpace, component: Component, forms: frozenset[str]) -> RuleGroup:
    names = frozenset(component.names)
    rules = [rule for rule in component.constraints if rule not in component.dropped]
    form = tuple(rule for rule in component.constraints if rule.text in forms)
    part = DesignSpace(
        parameters=component.parameters,
        conditions={name: space.conditions[name] for name in names & space.conditions.keys()},
        constraints=tuple(rules),
    )
    same = len(form) == len(component.constraints)
    unruled = component.count if same else replace(part, constraints=form).count()
    return RuleGroup(space=part, component=component, form=form, unruled=unruled)


def _count_group(group: RuleGroup, rules: Rules) -> tuple[int, Rules]:
    """Return the number of legal combinations of a group, and the rules that the count ignores."""
    names = group.space.by_name.keys()
    mine = tuple(rule for rule in rules if rule.names & names)
    if not mine and group.unruled is not None:
        return group.unruled, ()
    if len(mine) + len(group.form) == len(group.space.constraints):
        return group.component.bound, ()
    legal = replace(group.space, constraints=(*group.form, *mine)).legal
    return legal.bound, tuple(rule for one in legal.components for rule in one.dropped)


def _countable(space: DesignSpace) -> DesignSpace:
    """Return the space with each real parameter fixed at one value, without rules on them."""
    reals = frozenset(p.name for p in space.parameters if isinstance(p, Real))
    return DesignSpace(
        parameters=tuple(
            Ordinal(name=p.name, values=(p.low,)) if isinstance(p, Real) else p
            for p in space.parameters
        ),
        conditions={n: rule for n, rule in space.conditions.items() if not rule.names & reals},
        constraints=tuple(rule for rule in space.constraints if not rule.names & reals),
    )
