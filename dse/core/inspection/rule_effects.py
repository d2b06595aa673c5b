"""Effect of each rule (the share of designs it removes), and how often parameters are active.

The shares are exact if the designs can be counted. They are estimated from random draws where rules
read real parameters or couple too many parameters; the number of draws is stated. A real parameter
that no rule reads does not prevent exact shares.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

import numpy as np

from dse.core.batch import Batch
from dse.core.expressions.expression import Expression
from dse.core.inspection.counts import RuleGroup, Rules, Weight, groups_of, weight, without
from dse.core.inspection.rule_conflicts import Rule, constraint_rules
from dse.core.legal_set.size_estimate import Estimate
from dse.core.parameter import Real, size
from dse.core.space import DesignSpace
from dse.core.values import Mask

DRAWS = 10_000
"""Number of designs drawn for an estimate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Portion:
    """Fraction of a set of designs: exact if ``draws`` is 0, else estimated from random designs."""

    share: float
    draws: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Removal:
    """Effect of one rule, as fractions of the designs that the space has without constraints.

    ``forbidden`` is the fraction that violates the rule; ``alone`` is the fraction that violates
    only this rule. ``removed`` is the number of designs in ``alone``; ``None`` if it cannot be
    counted.
    """

    rule: Rule
    forbidden: Portion
    alone: Portion
    removed: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SpaceSize:
    """Number of designs before and after the rules; ``None`` where it cannot be counted.

    ``combinations`` is the product of the domain sizes. ``unruled`` is the number of designs
    without constraints; it is smaller than ``combinations`` if parameters can be inactive, or if a
    list is restricted to orders, subsets or partitions. ``designs`` is the number of legal designs,
    and ``share`` is ``designs`` / ``unruled``. If the legal designs cannot be counted, ``estimate``
    is an estimate of their number.
    """

    combinations: int | None
    unruled: int | None
    designs: int | None
    share: Portion
    estimate: Estimate | None = None


class Portions:
    """Calculator of how many designs each rule removes, and how often each parameter is active.

    The space must have at least one legal design.
    """

    def __init__(self, space: DesignSpace) -> None:
        self._space = space
        self._reals = frozenset(p.name for p in space.parameters if isinstance(p, Real))
        forms = {rule.text for one in space.lists.values() for rule in one.rules}
        self._form = tuple(rule for rule in space.constraints if rule.text in forms)
        self._rules = tuple(rule for rule in space.constraints if rule.text not in forms)
        self._pools: dict[tuple[int, ...], Batch] = {}

    @cached_property
    def groups(self) -> tuple[RuleGroup, ...]:
        """Groups of parameters that rules couple; rules over real parameters are ignored."""
        return groups_of(self._space, frozenset(rule.text for rule in self._form))

    @cached_property
    def _plain(self) -> Rules:
        """Rules whose effect is counted exactly: over finite parameters, in groups small enough.

        A group is a set of parameters that rules couple.
        """
        dropped = tuple(rule for group in self.groups for rule in group.component.dropped)
        finite = tuple(rule for rule in self._rules if not rule.names & self._reals)
        return without(finite, dropped)

    @cached_property
    def extent(self) -> SpaceSize:
        """Numbers of designs of the space before and after its constraints are applied."""
        sizes = [size(parameter) for parameter in self._space.parameters]
        designs = self._space.count()
        estimate = self._space.estimate() if designs is None else None
        if estimate is not None and estimate.hits and self._unruled:
            about = float(Fraction(estimate.count, self._unruled))
            share = Portion(share=about, draws=estimate.draws)
        elif self._exact is None:
            share = self._drawn_share(weight(self.groups, self._plain))
        else:
            share = Portion(share=float(self._exact))
        return SpaceSize(
            combinations=None if self._reals else math.prod(int(one) for one in sizes),
            unruled=self._unruled,
            designs=designs,
            share=share,
            estimate=estimate,
        )

    @cached_property
    def removals(self) -> tuple[Removal, ...]:
        """Effect of each constraint on the number of designs, in the order of the constraints."""
        rules = constraint_rules(self._space)
        return tuple(self._removal(rule) for rule in rules if rule.expression in self._rules)

    @cached_property
    def activity(self) -> Mapping[str, Portion]:
        """Fraction of legal designs in which each conditional parameter is active, by parameter."""
        known = self._counted_activity()
        drawn = [name for name in self._space.conditions if name not in known]
        if drawn:
            pool = self._pool(self._rules)
            shares = {name: 1 - float(pool.absent(name).mean()) for name in drawn}
            known |= {n: Portion(share=share, draws=len(pool)) for n, share in shares.items()}
        return known

    def _counted_activity(self) -> dict[str, Portion]:
        """Return exact activity fractions of the parameters whose combinations can be counted."""
        found: dict[str, Portion] = {}
        drawn = frozenset[str]().union(*(r.names for r in without(self._rules, self._plain)))
        for group in self.groups:
            if group.space.conditions and not drawn & group.space.by_name.keys():
                for name, counts in group.component.occurrences().items():
                    absent = Fraction(counts[0], sum(counts))
                    found[name] = Portion(share=float(1 - absent))
        return {n: found[n] for n in self._space.conditions if n in found and self._is_finite(n)}

    def _is_finite(self, name: str) -> bool:
        return not self._space.conditions[name].names & self._reals

    @cached_property
    def _unruled(self) -> int | None:
        sizes = [group.unruled for group in self.groups]
        known = [one for one in sizes if one is not None]
        return None if self._reals or len(known) < len(sizes) else math.prod(known)

    @cached_property
    def _exact(self) -> Fraction | None:
        """Exact fraction of the unconstrained designs that is legal; ``None`` if not countable."""
        mixed = len(self._plain) < len(self._rules)
        return None if mixed else self._share(self._plain)

    def _share(self, rules: Rules) -> Fraction | None:
        """Return the exact fraction of unconstrained designs that satisfies the rules.

        It is ``None`` if the designs cannot be counted.
        """
        known = weight(self.groups, rules)
        return None if known is None or known.left else known.share

    def _removal(self, rule: Rule) -> Removal:
        one = rule.expression
        rest = weight(self.groups, without(self._plain, (one,)))
        if self._exact is None or rest is None or rest.left:
            alone, removed = self._drawn_share(rest, one), None
        else:
            share = rest.share - self._exact
            alone = Portion(share=float(share))
            removed = None if self._unruled is None else int(share * self._unruled)
        return Removal(rule=rule, forbidden=self._forbidden(one), alone=alone, removed=removed)

    def _forbidden(self, rule: Expression) -> Portion:
        kept = None if rule.names & self._reals else self._share((rule,))
        if kept is not None:
            return Portion(share=float(1 - kept))
        broken = ~_holds((rule,), self._pool(()))
        return Portion(share=float(broken.mean()), draws=len(broken))

    def _drawn_share(self, counted: Weight | None, but: Expression | None = None) -> Portion:
        """Estimate the fraction of unconstrained designs that violates ``but`` and no other rule.

        Without ``but``, estimate the fraction that satisfies every rule. The exact fraction for the
        rules in ``counted`` is multiplied by the fraction, among draws that satisfy these rules,
        that meets the remaining requirements.
        """
        others = self._rules if but is None else without(self._rules, (but,))
        first: Rules = ()
        if counted is not None:
            first = without(without(self._plain, () if but is None else (but,)), counted.left)
        share = Fraction(1) if counted is None else counted.share
        if not share:
            return Portion(share=0.0)
        pool = self._pool(first)
        hit = _holds(without(others, first), pool)
        if but is not None:
            hit &= ~_holds((but,), pool)
        return Portion(share=float(share) * float(hit.mean()), draws=len(pool))

    def _pool(self, rules: Rules) -> Batch:
        """Return designs drawn uniformly from those that satisfy the rules; they are cached."""
        key = tuple(map(id, rules))
        if key not in self._pools:
            some = replace(self._space, constraints=(*self._form, *rules))
            self._pools[key] = some.sample(DRAWS, np.random.default_rng(0))
        return self._pools[key]


def _holds(rules: Rules, batch: Batch) -> Mask:
    keep: Mask = np.ones(len(batch), dtype=bool)
    for rule in rules:
        keep &= rule.holds(batch.columns, len(batch), unknown=True)
    return keep
