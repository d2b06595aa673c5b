"""Values of partially set designs in the states of a decision diagram under construction.

A value is stored as one code per state: an index into its distinct values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dse.core.batch import Column, build_array
from dse.core.expressions.expression import Expression
from dse.core.expressions.syntax import Node
from dse.core.legal_set.residual_rules import names_of
from dse.core.values import Array, Ints, Value

_TICKED = 8


@dataclass(slots=True)
class PartialValue:
    """Values of a parameter or subexpression in s partial designs, as codes."""

    codes: Ints  # (s,), -1 where it is absent
    values: Array  # (v,)
    domain: tuple[Value, ...] = ()

    def column(self) -> Column:
        """Return the decoded value in each of s partial designs, (s,)."""
        if self.domain:
            return Column.coded(self.domain, self.codes)
        gone = self.codes < 0
        filler = self.values if len(self.values) else np.zeros(1)
        return Column(filler[np.where(gone, 0, self.codes)], gone if gone.any() else None)


def taken(known: PartialValue, rows: Ints) -> PartialValue:
    """Return the values of a parameter in some of the partial designs only.

    Args:
        known: the value in all states.
        rows: indices of the states, (n,).
    """
    return PartialValue(known.codes[rows], known.values, known.domain)


def encode_column(column: Column) -> PartialValue:
    """Encode a column as one code per partial design, an index into the distinct values."""
    if column.values.dtype == object:  # strings and numbers cannot be sorted together
        places = {v: place for place, v in enumerate(dict.fromkeys(column.values.tolist()))}
        own = np.array([places[v] for v in column.values.tolist()], dtype=np.int64)
        found = own if column.absent is None else np.where(column.absent, -1, own)
        return PartialValue(found, build_array(tuple(places)))
    values, codes = np.unique(column.values, return_inverse=True)
    codes = codes.astype(np.int64).reshape(-1)
    if column.absent is not None:
        codes = np.where(column.absent, -1, codes)
    return PartialValue(codes, values)


def compute_formula(node: Node, known: Mapping[str, PartialValue], size: int) -> PartialValue:
    """Compute a formula in each partial design, once per distinct combination of its inputs.

    Args:
        node: the formula.
        known: the inputs by name.
        size: number of states.
    """
    names = sorted(names_of(node))
    inputs = [known[name] for name in names]
    _, first, place = distinct(*keys(inputs, size))
    columns = {name: taken(one, first).column() for name, one in zip(names, inputs, strict=True)}
    few = encode_column(Expression("", node).values(columns, len(first)))
    return PartialValue(few.codes[place], few.values)


def keys(known: Sequence[PartialValue], size: int) -> tuple[Ints, int]:
    """Return an integer key per partial design, equal for designs with equal values.

    The second result is a number that exceeds all keys.

    Args:
        known: the values to compare.
        size: number of states.
    """
    key, scale = np.zeros(size, dtype=np.int64), 1
    for one in known:
        span = len(one.values) + 1
        if scale * span >= 2**62:
            few, _, key = distinct(key, scale)
            scale = len(few)
        scale *= span
        if scale > span:
            key *= span
        key += one.codes
        key += 1
    return key, scale


def distinct(numbers: Ints, bound: int) -> tuple[Ints, Ints, Ints]:
    """Return the distinct integers, their first indices, and each integer's index among them.

    The result equals the result of ``numpy.unique``. If ``bound`` is small, the numbers are marked
    in a mask, which takes a tenth of the time of a sort.

    Args:
        numbers: integers from 0 to ``bound - 1``, (n,).
        bound: exclusive upper bound.
    """
    if bound > _TICKED * len(numbers) + 1_000:
        return np.unique(numbers, return_index=True, return_inverse=True)
    seen = np.zeros(bound, dtype=bool)
    seen[numbers] = True
    few = np.flatnonzero(seen)
    place = np.empty(bound, dtype=np.int64)
    place[few] = np.arange(len(few))
    inverse = place[numbers]
    first = np.empty(len(few), dtype=np.int64)
    first[inverse[::-1]] = np.arange(len(numbers) - 1, -1, -1)
    return few, first, inverse
