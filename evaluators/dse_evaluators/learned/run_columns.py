"""Columns of inputs, of runs and of designs alike: numbers, or texts as codes of known words."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dse.core.batch import Batch
from dse.core.values import Floats, Ints, Mask

UNKNOWN = -2
"""Code of a text that no run has."""

ABSENT = -1
"""Code of an absent text; an absent number is NaN."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NumberColumn:
    """Column of a table of runs whose values are numbers, with their range."""

    name: str
    least: float
    largest: float
    may_be_absent: bool

    def read(self, batch: Batch) -> Floats:
        """Return n designs' values of the column, (n,); NaN if absent, infinite if no number."""
        if self.name not in batch:
            return np.full(len(batch), np.nan)
        column = batch.columns[self.name]
        values = column.values
        if values.dtype == object or values.dtype.kind in "US":
            values = np.array([number_or_infinity(value) for value in values.tolist()])
        values = values.astype(np.float64)
        return values if column.absent is None else np.where(column.absent, np.nan, values)

    def is_outside(self, values: Floats) -> Mask:
        """Return which values, (n,), are outside of the runs' range, or absent as in no run."""
        gone = np.isnan(values)
        outside = (values < self.least) | (values > self.largest)
        return np.where(gone, not self.may_be_absent, outside)


@dataclass(frozen=True, slots=True, kw_only=True)
class TextColumn:
    """Column of a table of runs whose values are texts; ``words`` are the distinct ones."""

    name: str
    words: tuple[str, ...]
    may_be_absent: bool

    def read(self, batch: Batch) -> Ints:
        """Return the code of each of n designs, (n,): an index of ``words``, or a negative code."""
        if self.name not in batch:
            return np.full(len(batch), ABSENT)
        column = batch.columns[self.name]
        if column.codes is not None:
            known = np.array([*(self.code(value) for value in column.domain), ABSENT])
            return known[column.codes]
        distinct = {value: self.code(value) for value in set(column.values.tolist())}
        codes = np.array([distinct[value] for value in column.values.tolist()], dtype=np.int64)
        return codes if column.absent is None else np.where(column.absent, ABSENT, codes)

    def code(self, value: Any) -> int:
        """Return the code of one text: its index, or a negative code."""
        word = word_of(value)
        return self.words.index(word) if word in self.words else UNKNOWN

    def is_outside(self, codes: Ints) -> Mask:
        """Return where a text occurs in no run, or is absent although every run has one."""
        return (codes == UNKNOWN) | ((codes == ABSENT) & (not self.may_be_absent))


InputColumn = NumberColumn | TextColumn


def word_of(value: Any) -> str:
    """Return the canonical text of a value: ``true``, ``8`` for 8.0, else stripped."""
    if isinstance(value, bool | np.bool_):
        return str(bool(value)).lower()
    if isinstance(value, int | float) and float(value).is_integer():
        return str(int(value))
    text = str(value).strip()
    return text.lower() if text.lower() in ("true", "false") else text


def number_or_infinity(value: Any) -> float:
    """Return a value as a number; infinity for a text that is not a number."""
    try:
        return float(value)
    except (TypeError, ValueError):
        return math.inf


def column_of(name: str, values: Sequence[Any]) -> tuple[InputColumn, Floats | Ints]:
    """Return a description of a column of runs, with its values as numbers or codes, (r,).

    Args:
        name: the name of the input.
        values: plain values of r runs; ``None`` where absent. A column with any text or truth
            value is a column of texts.
    """
    present = [value for value in values if value is not None]
    gone = len(present) < len(values)
    if any(isinstance(value, bool | str) for value in present):
        words = tuple(sorted({word_of(value) for value in present}))
        place = {word: code for code, word in enumerate(words)}
        codes = [ABSENT if value is None else place[word_of(value)] for value in values]
        return TextColumn(name=name, words=words, may_be_absent=gone), np.array(codes)
    numbers = np.array([math.nan if value is None else float(value) for value in values])
    least, largest = (min(present), max(present)) if present else (math.nan, math.nan)
    column = NumberColumn(name=name, least=float(least), largest=float(largest), may_be_absent=gone)
    return column, numbers


def find_outside(columns: Sequence[InputColumn], values: Mapping[str, Any]) -> Mask:
    """Return which of n designs are outside of the range of the runs in any column, (n,)."""
    outside = [column.is_outside(values[column.name]) for column in columns]
    return np.logical_or.reduce(outside)
