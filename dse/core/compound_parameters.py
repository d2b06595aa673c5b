"""Structured parameters: lists, orders, subsets, partitions, and shares that sum to one.

A design is a flat mapping of single values, so each structured parameter is *lowered*: to scalar
``members`` with names such as ``bits[0]`` or ``kept[conv1]``, the ``conditions`` under which they
are active, and the ``rules`` that couple them. Its ``listing`` makes it usable as a list in
formulas. If a structured parameter is inactive, all of its members are absent and its rules hold
vacuously.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise

from dse.core.expressions import syntax
from dse.core.expressions.expression import Expression
from dse.core.expressions.list_rules import Listing
from dse.core.parameter import Choice, Integer, Ordinal, Parameter, Real
from dse.core.values import Value

TOLERANCE = 1e-9
"""Largest deviation of a sum of shares from one, to allow for floating-point rounding."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Each:
    """List of ``length`` values of one domain: ``bits[0]``, ``bits[1]`` and so on.

    ``domain`` is the parameter that gives each member's domain; its name is not used.
    """

    name: str
    domain: Parameter
    length: int
    when: Expression | None = None

    @property
    def members(self) -> tuple[Parameter, ...]:
        return tuple(replace(self.domain, name=member(self.name, i)) for i in range(self.length))

    @property
    def conditions(self) -> Mapping[str, Expression]:
        return _activity(self.when, self.members)

    @property
    def rules(self) -> tuple[Expression, ...]:
        return ()

    @property
    def listing(self) -> Listing:
        return _listing(self.name, range(self.length))


@dataclass(frozen=True, slots=True, kw_only=True)
class Permutation:
    """Order of items as a parameter: member ``i`` is the item at position ``i``, from 0."""

    name: str
    items: tuple[Value, ...]
    when: Expression | None = None

    @property
    def members(self) -> tuple[Parameter, ...]:
        names = [member(self.name, i) for i in range(len(self.items))]
        numbers = tuple(item for item in self.items if not isinstance(item, bool | str))
        if len(numbers) == len(self.items):
            return tuple(Ordinal(name=name, values=numbers) for name in names)
        return tuple(Choice(name=name, values=self.items) for name in names)

    @property
    def conditions(self) -> Mapping[str, Expression]:
        return _activity(self.when, self.members)

    @property
    def rules(self) -> tuple[Expression, ...]:
        different = syntax.Call("all_different", self.listing.nodes)
        return (Expression(f"all_different({self.name})", different),)

    @property
    def listing(self) -> Listing:
        return _listing(self.name, range(len(self.items)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Subset:
    """Selection of items: member ``name[item]`` is true if the item is selected.

    The number of selected items is from ``least`` to ``most`` or, if ``counted_by`` names a
    parameter, the value of that parameter; the number is not restricted if that parameter is
    absent.
    """

    name: str
    items: tuple[Value, ...]
    least: int
    most: int
    counted_by: str = ""
    when: Expression | None = None

    @property
    def members(self) -> tuple[Parameter, ...]:
        return tuple(
            Choice(name=member(self.name, item), values=(False, True)) for item in self.items
        )

    @property
    def conditions(self) -> Mapping[str, Expression]:
        return _activity(self.when, self.members)

    @property
    def rules(self) -> tuple[Expression, ...]:
        count, text = syntax.Call("sum", self.listing.nodes), f"count({self.name})"
        if self.counted_by:
            same = syntax.Compare(("==",), (count, syntax.Name(self.counted_by)))
            return (Expression(f"{text} == {self.counted_by}", same),)
        if self.least == self.most:
            exact = syntax.Compare(("==",), (count, syntax.Number(self.least)))
            return (Expression(f"{text} == {self.least}", exact),)
        if self.least == 0 and self.most == len(self.items):
            return ()
        within = syntax.Compare(
            ("<=", "<="), (syntax.Number(self.least), count, syntax.Number(self.most))
        )
        return (Expression(f"{self.least} <= {text} <= {self.most}", within),)

    @property
    def listing(self) -> Listing:
        nodes = tuple(syntax.Name(member(self.name, item)) for item in self.items)
        return Listing(keys=self.items, nodes=nodes, flags=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Partition:
    """Parameter that splits a chain of ``length`` links into contiguous, non-empty segments.

    A partition is encoded by the cuts between segments: member ``i`` is the number of links before
    cut ``i``, and the members ascend. There are ``least`` to ``most`` segments. If the two bounds
    differ, the number of segments is a separate parameter ``name.parts``, or the parameter that
    ``counted_by`` names. Cut ``i`` is active if there are more than ``i + 1`` segments.
    """

    name: str
    length: int
    least: int
    most: int
    counted_by: str = ""
    when: Expression | None = None

    @property
    def parts(self) -> syntax.Number | syntax.Name:
        """Formula of the number of segments: a constant, or the parameter that holds the number."""
        if self.counted_by:
            return syntax.Name(self.counted_by)
        return (
            syntax.Number(self.most)
            if self.least == self.most
            else syntax.Name(f"{self.name}.parts")
        )

    @property
    def members(self) -> tuple[Parameter, ...]:
        cuts = tuple(
            Integer(
                name=member(self.name, cut),
                low=cut + 1,
                high=self.length - 1 - max(self.least - 2 - cut, 0),
            )
            for cut in range(self.most - 1)
        )
        if self.counted_by or self.least == self.most:
            return cuts
        return (Integer(name=f"{self.name}.parts", low=self.least, high=self.most), *cuts)

    @property
    def conditions(self) -> Mapping[str, Expression]:
        conditions = dict(_activity(self.when, self.members))
        parts = self.parts
        if isinstance(parts, syntax.Number):
            return conditions
        for cut in range(max(self.least - 1, 0), self.most - 1):
            enough = syntax.Compare((">",), (parts, syntax.Number(cut + 1)))
            text = f"{parts.name} > {cut + 1}"
            if self.when is not None:
                node, text = (
                    syntax.Logic("and", (self.when.node, enough)),
                    f"({self.when.text}) and {text}",
                )
                conditions[member(self.name, cut)] = Expression(text, node)
            else:
                conditions[member(self.name, cut)] = Expression(text, enough)
        return conditions

    @property
    def rules(self) -> tuple[Expression, ...]:
        cuts = self.listing.nodes
        ascending = [
            Expression(
                f"{self.name}[{place}] < {self.name}[{place + 1}]",
                syntax.Compare(("<",), (left, right)),
            )
            for place, (left, right) in enumerate(pairwise(cuts))
        ]
        if self.counted_by:
            within = (syntax.Number(1), syntax.Name(self.counted_by), syntax.Number(self.most))
            text = f"1 <= {self.counted_by} <= {self.most}"
            ascending.append(Expression(text, syntax.Compare(("<=", "<="), within)))
        return tuple(ascending)

    @property
    def listing(self) -> Listing:
        plain = _listing(self.name, range(self.most - 1))
        if not isinstance(self.parts, syntax.Number):
            return plain
        ends = (*plain.nodes, syntax.Number(self.length))
        inner = [syntax.Binary("-", right, left) for left, right in pairwise(ends)]
        return replace(plain, sizes=(ends[0], *inner))


@dataclass(frozen=True, slots=True, kw_only=True)
class Simplex:
    """Non-negative shares of the items that sum to one.

    With ``steps`` the shares are integer multiples of ``1 / steps``, and the sum is exact.
    """

    name: str
    items: tuple[Value, ...]
    steps: int | None = None
    when: Expression | None = None

    @property
    def simplex(self) -> frozenset[str]:
        """Names of the list's real members, which sum to one and are sampled jointly; else none."""
        return frozenset() if self.steps else frozenset(m.name for m in self.members)

    @property
    def members(self) -> tuple[Parameter, ...]:
        names = [member(self.name, item) for item in self.items]
        if self.steps is None:
            return tuple(Real(name=name, low=0.0, high=1.0) for name in names)
        return tuple(Ordinal(name=name, values=self._shares) for name in names)

    @property
    def conditions(self) -> Mapping[str, Expression]:
        return _activity(self.when, self.members)

    @property
    def rules(self) -> tuple[Expression, ...]:
        nodes, text = self.listing.nodes, f"sum({self.name}) == 1"
        if self.steps is None:
            distance = syntax.Call(
                "abs", (syntax.Binary("-", syntax.Call("sum", nodes), syntax.Number(1)),)
            )
            return (
                Expression(text, syntax.Compare(("<=",), (distance, syntax.Number(TOLERANCE)))),
            )
        entries = tuple((share, k) for k, share in enumerate(self._shares))
        wholes = tuple(syntax.Lookup(node, entries, text=f"{text} in steps") for node in nodes)
        exact = syntax.Compare(("==",), (syntax.Call("sum", wholes), syntax.Number(self.steps)))
        return (Expression(text, exact),)

    @property
    def listing(self) -> Listing:
        nodes = tuple(syntax.Name(member(self.name, item)) for item in self.items)
        return Listing(keys=self.items, nodes=nodes)

    @property
    def _shares(self) -> tuple[float, ...]:
        assert self.steps is not None
        return tuple(float(f"{k / self.steps:.12g}") for k in range(self.steps + 1))


Structured = Each | Permutation | Subset | Partition | Simplex


def member(name: str, key: Value) -> str:
    """Return the parameter name of a list's item by its key: ``bits[0]``, ``kept[conv1]``."""
    return f"{name}[{key}]"


def _listing(name: str, keys: range) -> Listing:
    return Listing(keys=tuple(keys), nodes=tuple(syntax.Name(member(name, key)) for key in keys))


def _activity(when: Expression | None, members: tuple[Parameter, ...]) -> Mapping[str, Expression]:
    return {} if when is None else {one.name: when for one in members}
