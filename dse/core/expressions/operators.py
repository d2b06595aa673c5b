"""Vectorized operators and functions of the expression language; absent values are unknown."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np

from dse.core.batch import Column, build_array
from dse.core.values import Array, Mask, Value

_WHOLE_END = 2.0**53
"""Limit from which integers are computed as floats; smaller ones are exact in both types.

A row's value therefore does not depend on the other rows, whatever the column's type.
"""

AGREEMENT = 1e-12
"""Relative tolerance within which comparisons treat floats as equal."""

_BITS = 62
"""Most distinct values that fit, one bit each, into a 64-bit integer."""


@dataclass(frozen=True, slots=True)
class Function:
    """Function of the formula language, with the least and most arguments that it takes.

    ``lists`` is true if a list may be given as the arguments; ``truth`` is true if the result is
    Boolean and not a number.
    """

    least: int
    most: int | None
    compute: Callable[[Sequence[Column]], Array]
    lists: bool = False
    truth: bool = False


def constant(value: Value) -> Column:
    """Return a column that holds one value, which broadcasts to every design."""
    return Column(build_array((value,)))


def call_function(function: str, arguments: Sequence[Column]) -> Column:
    """Call a function of :data:`FUNCTIONS`; the result is unknown where any argument is."""
    values = FUNCTIONS[function].compute(arguments)
    return Column(values, either([argument.absent for argument in arguments]))


def arithmetic(operator: str, left: Column, right: Column) -> Column:
    """Compute ``+ - * / // % **``; the result is unknown where either operand is."""
    values = _compute_arithmetic(operator, _convert_truths(left), _convert_truths(right))
    return Column(values, either([left.absent, right.absent]))


def negative(operand: Column) -> Column:
    """Return the negated numbers of a column."""
    return Column(np.negative(_convert_truths(operand)), operand.absent)


def comparison(operators: Sequence[str], operands: Sequence[Column]) -> Column:
    """Return for each design whether all comparisons of a chain such as ``a < b <= c`` hold."""
    links = [
        Column(_compare_columns(op, a, b), either([a.absent, b.absent]))
        for op, a, b in zip(operators, operands, operands[1:], strict=False)
    ]
    return links[0] if len(links) == 1 else conjunction(links)


def membership(item: Column, values: Sequence[Column], *, negated: bool) -> Column:
    """Return for each design whether the item equals one of the values; ``negated`` inverts it."""
    differ = [
        Column(np.logical_not(_equal(item, value)), either([item.absent, value.absent]))
        for value in values
    ]
    none = conjunction(differ) if differ else constant(value=True)
    return none if negated else negation(none)


def logic(operator: str, operands: Sequence[Column]) -> Column:
    """Compute ``and``, ``or`` or ``->`` in Kleene's three-valued logic."""
    if operator == "and":
        return conjunction(operands)
    if operator == "->":
        operands = [negation(operands[0]), *operands[1:]]
    return negation(conjunction([negation(operand) for operand in operands]))


def negation(operand: Column) -> Column:
    """Compute Kleene's ``not``: unknown where the operand is unknown."""
    return Column(np.logical_not(operand.values.astype(bool)), operand.absent)


def conjunction(operands: Sequence[Column]) -> Column:
    """Compute Kleene's ``and``: false if any operand is false, else unknown if any is unknown."""
    false = [
        np.logical_not(operand.values.astype(bool))
        if operand.absent is None
        else np.logical_not(operand.values.astype(bool)) & ~operand.absent
        for operand in operands
    ]
    refuted = reduce(np.logical_or, false)
    unknown = either([operand.absent for operand in operands])
    return Column(np.logical_not(refuted), None if unknown is None else unknown & ~refuted)


def absence(operand: Column, *, negated: bool) -> Column:
    """Return for each design whether the operand is absent; the result is always known."""
    absent = np.array([False]) if operand.absent is None else operand.absent
    return Column(np.logical_not(absent) if negated else absent)


def either(masks: Sequence[Mask | None]) -> Mask | None:
    """Return the elementwise OR of the masks that are not ``None``; ``None`` if all are."""
    present = [mask for mask in masks if mask is not None]
    return reduce(np.logical_or, present) if present else None


def _compute_arithmetic(operator: str, a: Array, b: Array) -> Array:
    by_zero = operator in ("//", "%") and bool((b == 0).any())
    if by_zero or operator == "**":  # whole numbers would give 0, or refuse a negative power
        a, b = a.astype(np.float64), b.astype(np.float64)
    if operator in _SIGNED:  # turn -0.0 into 0.0, so that its sign does not decide an infinity's
        a, b = a + 0.0 if a.dtype.kind == "f" else a, b + 0.0 if b.dtype.kind == "f" else b
    whole = a.dtype.kind == "i" and b.dtype.kind == "i" and operator in _WRAPPING
    if whole and _WRAPPING[operator](_magnitude(a), _magnitude(b)) >= _WHOLE_END:
        exact = _ARITHMETIC[operator](a.astype(np.float64), b.astype(np.float64))
        if (np.abs(exact) >= _WHOLE_END).any():  # 64 bits would wrap round
            return exact
    return _ARITHMETIC[operator](a, b)


def _magnitude(values: Array) -> float:
    """Return the largest absolute value of the integers."""
    return float(max(abs(int(values.max())), abs(int(values.min())))) if values.size else 0.0


def _compare_columns(operator: str, left: Column, right: Column) -> Array:
    if operator in ("==", "!="):
        equal = _equal(left, right)
        return equal if operator == "==" else np.logical_not(equal)
    a, b = left.values, right.values
    result = _ORDER[operator](a, b)
    if "f" not in (a.dtype.kind, b.dtype.kind):
        return result
    same = agree(a, b)
    return result | same if operator in ("<=", ">=") else result & ~same


def agree(a: Array, b: Array) -> Array:
    """Return where two arrays of finite numbers are equal up to rounding errors, as a mask.

    For example, 0.1 + 0.2 equals 0.3.
    """
    size = np.maximum(np.abs(a), np.abs(b))
    return np.asarray((np.abs(a - b) <= AGREEMENT * size) & np.isfinite(size))


def _equal(left: Column, right: Column) -> Array:
    if left.codes is None or left.values.size == 1:
        left, right = right, left
    if left.codes is not None and right.values.size == 1 and right.codes is None:
        wanted = right.values[0]
        matches = np.array([_alike(value, wanted) for value in left.domain], dtype=bool)
        return matches[left.codes]
    equal = np.asarray(left.values == right.values, dtype=bool)
    kinds = {left.values.dtype.kind, right.values.dtype.kind}
    return (
        equal | agree(left.values, right.values) if "f" in kinds and kinds <= set("fiub") else equal
    )


def _alike(one: Any, other: Any) -> bool:
    """Return whether two values are equal; floats may differ by rounding errors."""
    if isinstance(one, float) or isinstance(other, float | np.floating):
        numbers = isinstance(one, int | float) and not isinstance(other, str)
        return numbers and math.isclose(one, other, rel_tol=AGREEMENT)
    return bool(one == other)


def _convert_truths(column: Column) -> Array:
    """Return the values with Booleans converted to 0 and 1 for arithmetic."""
    if column.values.dtype.kind in "biu":
        return column.values.astype(np.int64, copy=False)
    if column.values.dtype == object:  # Booleans mixed with numbers; texts stay unchanged
        known = column.domain or tuple(dict.fromkeys(column.values.tolist()))
        if all(isinstance(value, int | float) for value in known):
            whole = all(isinstance(value, int) for value in known)
            return column.values.astype(np.int64 if whole else np.float64)
    return column.values


def _is_pow2(values: Array) -> Array:
    whole = np.asarray(values, dtype=np.float64)
    mantissa, _ = np.frexp(whole)
    return (mantissa == 0.5) & (whole >= 1)


def _all_different(columns: Sequence[Column]) -> Array:
    codes, count = _shared_codes(columns)
    if count > _BITS:
        table = np.sort(np.stack(np.broadcast_arrays(*codes)), axis=0)
        return np.asarray((table[1:] != table[:-1]).all(axis=0))
    seen: Array = np.zeros(1, dtype=np.int64)
    twice: Array = np.zeros(1, dtype=np.int64)
    for code in codes:
        bit = np.left_shift(np.int64(1), code)
        twice = twice | (seen & bit)
        seen = seen | bit
    return np.asarray(twice == 0)


def _shared_codes(columns: Sequence[Column]) -> tuple[list[Array], int]:
    """Return each column as integer codes over one domain, and the number of distinct codes.

    Equal values have equal codes in all columns.
    """
    known: dict[Value, int] = {}
    coded: list[Array] = []
    for column in columns:
        domain, codes = column.domain, column.codes
        if codes is None:
            domain, codes = _encode_values(column.values)
        own = [known.setdefault(value, len(known)) for value in domain]
        coded.append(np.array([*own, 0], dtype=np.int64)[codes])  # the last is the code -1
    return coded, len(known)


def _encode_values(values: Array) -> tuple[tuple[Value, ...], Array]:
    """Return the distinct values, and for each design the index of its value among them."""
    if values.dtype == object:  # texts and numbers have no common order
        places = {value: place for place, value in enumerate(dict.fromkeys(values.tolist()))}
        return tuple(places), np.array([places[value] for value in values.tolist()])
    distinct, inverse = np.unique(values, return_inverse=True)
    return tuple(distinct.tolist()), inverse.reshape(values.shape)


def _plain(compute: Callable[..., Array]) -> Callable[[Sequence[Column]], Array]:
    return lambda columns: compute(*(_convert_truths(column) for column in columns))


def _fold(step: Callable[[Array, Array], Array]) -> Callable[[Sequence[Column]], Array]:
    """Build a function that reduces columns from left to right, as ``a + b + c`` is evaluated.

    A sum is therefore rounded exactly like that formula.
    """
    return lambda columns: reduce(step, [_convert_truths(column) for column in columns])


FUNCTIONS: Mapping[str, Function] = {
    "min": Function(1, None, _fold(np.minimum), lists=True),
    "max": Function(1, None, _fold(np.maximum), lists=True),
    "sum": Function(1, None, _fold(lambda a, b: _compute_arithmetic("+", a, b)), lists=True),
    "product": Function(1, None, _fold(lambda a, b: _compute_arithmetic("*", a, b)), lists=True),
    "all_different": Function(1, None, _all_different, lists=True, truth=True),
    "abs": Function(1, 1, _plain(np.abs)),
    "log2": Function(1, 1, _plain(np.log2)),
    "sqrt": Function(1, 1, _plain(np.sqrt)),
    "ceil": Function(1, 1, _plain(np.ceil)),
    "floor": Function(1, 1, _plain(np.floor)),
    "round": Function(1, 1, _plain(np.round)),
    "is_pow2": Function(1, 1, _plain(_is_pow2), truth=True),
}
"""Functions that are evaluated over columns; ``round`` rounds halves to even, as Python does."""

_ARITHMETIC: Mapping[str, Callable[[Array, Array], Array]] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": np.true_divide,
    "//": np.floor_divide,
    "%": np.mod,
    "**": np.power,
}

_SIGNED = frozenset({"/", "//", "%", "**"})

_WRAPPING: Mapping[str, Callable[[float, float], float]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a + b,
    "*": lambda a, b: a * b,
}
"""Upper bound of the result's magnitude for each operator that can overflow 64-bit integers."""

_ORDER: Mapping[str, Callable[[Array, Array], Array]] = {
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
}
