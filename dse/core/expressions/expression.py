"""Parsed formula: its text, its syntax tree, and its vectorized evaluation over columns.

Absent parameters make a value *unknown* (Kleene's three-valued logic): arithmetic and comparisons
with an unknown operand are unknown; ``and``, ``or``, ``not`` and ``->`` are unknown only if the
known operands do not decide the result; ``is absent`` is always known. An unknown constraint holds;
an unknown condition does not. A reduction of a list (``sum``, ``count``, ``max``,
``all_different`` ...) is unknown if any item is; ``all`` and ``any`` follow ``and`` and ``or``.
A lookup of a key that the table lacks is unknown.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import assert_never

import numpy as np

from dse.core.batch import Column
from dse.core.expressions import syntax
from dse.core.expressions.operators import (
    absence,
    arithmetic,
    call_function,
    comparison,
    constant,
    logic,
    membership,
    negation,
    negative,
)
from dse.core.values import Mask
from dse.errors import SpecError


@dataclass(frozen=True)
class Expression:
    """Parsed formula with its source text."""

    text: str
    node: syntax.Node

    @cached_property
    def names(self) -> frozenset[str]:
        """Names of the parameters and metrics that the formula reads."""
        return frozenset(name.name for name in syntax.names_in(self.node))

    def values(self, columns: Mapping[str, Column], size: int) -> Column:
        """Return the formula's value for each of n designs, absent where it is unknown.

        Args:
            columns: a column for each of the formula's names, with ``size`` values or one for all.
            size: the number of designs.
        """
        with np.errstate(all="ignore"):
            known = _evaluate(self.node, columns)
        values = np.broadcast_to(known.values, (size,))
        absent = None if known.absent is None else np.broadcast_to(known.absent, (size,))
        return Column(values, absent)

    def holds(self, columns: Mapping[str, Column], size: int, *, unknown: bool) -> Mask:
        """Return for each design whether the formula is true, (size,).

        Where it is unknown, the result is the argument ``unknown``.
        """
        result = self.values(columns, size)
        truth = result.values.astype(bool)
        return truth if result.absent is None else np.where(result.absent, unknown, truth)

    def resolve_units(self, factor: Callable[[str], float]) -> Expression:
        """Return the formula with each literal multiplied by the ``factor`` of its unit."""
        return Expression(
            self.text, syntax.map_nodes(self.node, lambda node: _fold_literal(node, factor))
        )

    def renamed(self, names: Callable[[str], str]) -> Expression:
        """Return the formula with each name replaced by ``names(name)``; the text is unchanged."""

        def changed(node: syntax.Node) -> syntax.Node:
            return (
                syntax.Name(names(node.name), node.column)
                if isinstance(node, syntax.Name)
                else node
            )

        return Expression(self.text, syntax.map_nodes(self.node, changed))


def fold_unit(value: float, factor: float) -> int | float:
    """Return a number converted to the coherent unit, rounded to 15 digits: 0.7 for 70 percent.

    Args:
        value: a number in some unit.
        factor: how many coherent units that unit is.

    Raises:
        SpecError: the product is too large for a number.
    """
    try:
        product = value * factor
    except OverflowError:
        product = math.inf
    if not math.isfinite(product):
        raise SpecError(f"{str(value)[:20]} is too large a number in its unit")
    if factor != 1 and product != int(product):
        product = float(f"{product:.15g}")
    return int(product) if product == int(product) and abs(product) < 2**53 else product


def _fold_literal(node: syntax.Node, factor: Callable[[str], float]) -> syntax.Node:
    if isinstance(node, syntax.Number) and node.unit:
        return syntax.Number(fold_unit(node.value, factor(node.unit)))
    return node


def _evaluate(  # noqa: C901, PLR0912 - one case per kind of node
    node: syntax.Node, columns: Mapping[str, Column]
) -> Column:
    match node:
        case syntax.Number() | syntax.Text() | syntax.Truth():
            return constant(node.value)
        case syntax.Name():
            return columns[node.name]
        case syntax.Unary():
            operand = _evaluate(node.operand, columns)
            return negation(operand) if node.operator == "not" else negative(operand)
        case syntax.Binary():
            left, right = _evaluate(node.left, columns), _evaluate(node.right, columns)
            return arithmetic(node.operator, left, right)
        case syntax.Compare():
            return comparison(node.operators, _all(node.operands, columns))
        case syntax.Logic():
            return logic(node.operator, _all(node.operands, columns))
        case syntax.Member():
            item = _evaluate(node.item, columns)
            return membership(item, _all(node.values, columns), negated=node.negated)
        case syntax.Absent():
            return absence(_evaluate(node.name, columns), negated=node.negated)
        case syntax.Call():
            return call_function(node.function, _all(node.arguments, columns))
        case syntax.Lookup():
            return node.prepared.of(_evaluate(node.key, columns))
        case syntax.Listed():
            found = node.prepared.of(_all(node.names, columns))
            return negation(found) if node.negated else found
        case syntax.Index() | syntax.Field():
            raise AssertionError("a formula with lists must be expanded before it is evaluated")
        case _:
            assert_never(node)


def _all(nodes: Sequence[syntax.Node], columns: Mapping[str, Column]) -> list[Column]:
    return [_evaluate(node, columns) for node in nodes]
