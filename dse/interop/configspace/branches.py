"""Decision tree of a formula over finite parameters, whose tests are memberships in value sets.

Conditions and forbidden clauses of ConfigSpace can express only such tests. A parameter is tested
after those that its condition reads, so that no inactive parameter is tested.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from dse.core.batch import Column
from dse.core.expressions.expression import Expression
from dse.core.expressions.syntax import Absent, Node, children, names_in
from dse.core.parameter import Finite, Real
from dse.core.space import DesignSpace
from dse.core.values import Ints, Mask, Value
from dse.errors import SpecError

MAX_ROWS = 250_000
"""Largest number of combinations of values on which a formula is evaluated."""


@dataclass(frozen=True, slots=True)
class Test:
    """Test whether a parameter is active and has one of some values; node of a decision tree."""

    parameter: Finite
    values: tuple[Value, ...]


Tree = bool | tuple[tuple[Test, "Tree"], ...]
"""Constant result, or alternatives: each a test, and the subtree for when it holds."""

Path = tuple[Test, ...]


class UnsayableError(SpecError):
    """Error about a condition or rule that the other tool's format cannot express."""


def tree(space: DesignSpace, rule: Expression, *, wanted: bool) -> Tree:
    """Return the decision tree that is true where a rule evaluates to ``wanted``.

    Raises:
        UnsayableError: the formula reads the value of a real parameter, or has too many
            combinations.
    """
    real = sorted(
        collect_value_names(rule.node) & {p.name for p in space.parameters if isinstance(p, Real)}
    )
    if real:
        raise UnsayableError(f"it reads {real[0]}, a real parameter")
    table = _Table(space)
    for name in _order_names(space, rule.names):
        table.add(name)
    truth = rule.holds(table.columns, table.size, unknown=not wanted) == wanted
    return table.built(truth)


def paths(found: Tree) -> Iterator[Path]:
    """Yield each path from the root to a true leaf of a decision tree, as a tuple of tests."""
    if found is True:
        yield ()
    elif found is not False:
        for test, rest in found:
            for path in paths(rest):
                yield (test, *path)


def collect_value_names(node: Node) -> set[str]:
    """Return the parameters whose values the formula reads; ``x is absent`` reads no value."""
    if isinstance(node, Absent):
        return set()
    here = {name.name for name in names_in(node)} if not children(node) else set[str]()
    return here.union(*(collect_value_names(child) for child in children(node)))


def _order_names(space: DesignSpace, names: frozenset[str]) -> list[str]:
    """Return these parameters and all that their conditions depend on, in topological order."""
    found: list[str] = []

    def visit(name: str) -> None:
        if name in found:
            return
        rule = space.conditions.get(name)
        for parent in sorted(rule.names if rule else ()):
            visit(parent)
        found.append(name)

    for name in sorted(names):
        visit(name)
    return found


class _Table:
    """Table of all combinations of some parameters' values, in lexicographic order.

    A value is stored as its index in the parameter's domain, the value of an inactive parameter as
    -1.
    """

    def __init__(self, space: DesignSpace) -> None:
        self._space = space
        self._parameters: list[Finite | Real] = []
        self._codes: list[Ints] = []
        self.size = 1

    @property
    def columns(self) -> Mapping[str, Column]:
        return {
            p.name: Column.coded((0.0,) if isinstance(p, Real) else p.values, codes)
            for p, codes in zip(self._parameters, self._codes, strict=True)
        }

    def add(self, name: str) -> None:
        """Add a parameter to the table: repeat each row in which it is active for each value."""
        parameter = self._space.by_name[name]
        active = self._active(name)
        count = 1 if isinstance(parameter, Real) else len(parameter.values)
        times = np.where(active, count, 1)
        if int(times.sum()) > MAX_ROWS:
            raise UnsayableError(f"it has more than {MAX_ROWS:,} combinations")
        rows = np.repeat(np.arange(self.size), times)
        starts = np.cumsum(times) - times
        codes = np.arange(len(rows)) - starts[rows]
        self._codes = [column[rows] for column in self._codes]
        self._codes.append(np.where(active[rows], codes, -1))
        self._parameters.append(parameter)
        self.size = len(rows)

    def _active(self, name: str) -> Mask:
        rule = self._space.conditions.get(name)
        if rule is None:
            return np.ones(self.size, dtype=bool)
        real = [
            n for n in collect_value_names(rule.node) if isinstance(self._space.by_name[n], Real)
        ]
        if real:
            raise UnsayableError(f"{name} is active by {real[0]}, a real parameter")
        return rule.holds(self.columns, self.size, unknown=False)

    def built(self, truth: Mask) -> Tree:
        """Return the decision tree that is true for exactly the rows where ``truth`` is true."""
        return self._part(truth, 0, self.size, 0)

    def _part(self, truth: Mask, low: int, high: int, depth: int) -> Tree:
        """Return the decision subtree of rows ``low`` to ``high``.

        These rows agree in the columns before ``depth``.
        """
        known = truth[low:high]
        if known.all() or not known.any():
            return bool(known[0])
        parameter, codes = self._parameters[depth], self._codes[depth][low:high]
        if isinstance(parameter, Real) or codes[0] < 0:
            return self._part(truth, low, high, depth + 1)
        bounds = [*np.flatnonzero(np.diff(codes, prepend=-1)), high - low]
        values: dict[Tree, list[Value]] = {}
        for start, end in pairwise(bounds):
            rest = self._part(truth, low + int(start), low + int(end), depth + 1)
            values.setdefault(rest, []).append(parameter.values[int(codes[start])])
        if len(values) == 1:
            return next(iter(values))
        return tuple(
            (Test(parameter, tuple(some)), rest)
            for rest, some in values.items()
            if rest is not False
        )
