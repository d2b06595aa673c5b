"""Detection of rules that divide by zero or overflow for every combination of parameter values.

A rule that does so for some combinations only follows IEEE 754 there: ``x / 0`` is infinite, and
``0 / 0``, ``x // 0`` and ``x % 0`` are NaN, which is neither equal to, less than nor greater than
any number; so ``x % y == 0`` is false where y is 0.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

import numpy as np

from dse.core.batch import Column
from dse.core.expressions.expression import (
    Binary,
    Call,
    Expression,
    Node,
    Number,
    Unary,
    children,
    is_truth,
    names_in,
)
from dse.core.parameter import Parameter, Real
from dse.core.values import Floats, Value
from dse.errors import SpecError

MAX_COMBINATIONS = 50_000
"""Maximum number of parameter combinations for which a formula is evaluated."""

_DIVISIONS = ("/", "//", "%")
_PARTIAL = ("log2", "sqrt")


def check_has_value(rule: Expression, parameters: Mapping[str, Parameter]) -> None:
    """Check that every formula in the rule is finite for some combination of parameter values.

    Raises:
        SpecError: for every combination, a formula divides by zero, overflows or has no value.
    """
    for node in _formulas(rule.node, outer=True):
        if isinstance(node, Binary) and node.operator in _DIVISIONS:
            divisor = _values(node.right, parameters)
            if divisor is not None and (divisor == 0).all():
                raise SpecError(f"{rule.text!r} divides by zero, whatever the parameters are")
        values = _values(node, parameters)
        if values is None or np.isfinite(values).any():
            continue
        kind = "has no value" if np.isnan(values).all() else "is too large for a number"
        raise SpecError(f"a part of {rule.text!r} {kind}, whatever the parameters are")


def _formulas(node: Node, *, outer: bool) -> Iterator[Node]:
    """Yield nodes that may not be finite: quotients, powers, roots, logs, entire formulas."""
    arithmetic = isinstance(node, Binary | Unary | Number | Call) and not is_truth(node)
    risky = isinstance(node, Binary) and node.operator in (*_DIVISIONS, "**")
    if risky or (arithmetic and outer) or (isinstance(node, Call) and node.function in _PARTIAL):
        yield node
    for child in children(node):
        yield from _formulas(child, outer=not arithmetic)


def _values(node: Node, parameters: Mapping[str, Parameter]) -> Floats | None:
    """Return the formula's values over all combinations of its parameters' values, shape (n,).

    A real parameter is sampled at three points. The result is ``None`` if there are too many
    combinations, or if no value is a number.
    """
    names = sorted({name.name for name in names_in(node)})
    domains = [_sample_values(parameters[name]) for name in names]
    size = math.prod(len(domain) for domain in domains)
    if size > MAX_COMBINATIONS:
        return None
    if not names:
        return _evaluate_present(node, {}, 1)
    places = np.unravel_index(np.arange(size), [len(domain) for domain in domains])
    columns = {
        name: Column.coded(domain, codes)
        for name, domain, codes in zip(names, domains, places, strict=True)
    }
    return _evaluate_present(node, columns, size)


def _evaluate_present(node: Node, columns: Mapping[str, Column], size: int) -> Floats | None:
    found = Expression("", node).values(columns, size)
    if found.values.dtype.kind not in "bif":
        return None
    known = found.values if found.absent is None else found.values[~found.absent]
    return known.astype(np.float64) if len(known) else None


def _sample_values(parameter: Parameter) -> tuple[Value, ...]:
    """Return all values of a discrete parameter; both bounds and the midpoint of a real one."""
    if isinstance(parameter, Real):
        return (parameter.low, (parameter.low + parameter.high) / 2, parameter.high)
    return parameter.values
