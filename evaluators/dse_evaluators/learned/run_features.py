"""Features of designs for regression, made of columns of numbers and texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dse.core.values import Floats, Ints
from dse_evaluators.learned.run_columns import InputColumn, NumberColumn, TextColumn

_WIDE = 8.0
"""A positive column whose largest value is at least this multiple of the least is logarithmic."""

_ALIKE = 0.7
"""Share of common words from which two columns of texts count as places of the same choice."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Encoder:
    """Encoder of designs as features of a regression.

    Features are numbers, indicators of texts, and counts over alike columns. Alike columns are
    columns of at least three texts with mostly the same words, as the operators of a network's
    layers: the number of times that each word occurs in a design is a feature, too.
    """

    columns: tuple[InputColumn, ...]
    alike: tuple[tuple[str, ...], ...]

    @staticmethod
    def of(columns: Sequence[InputColumn]) -> Encoder:
        """Build the encoder of given columns; constant columns yield no feature."""
        return Encoder(
            columns=tuple(one for one in columns if not is_constant(one)),
            alike=tuple(_alike_columns([one for one in columns if isinstance(one, TextColumn)])),
        )

    @property
    def sources(self) -> list[str]:
        """Column from which each feature is computed; empty for counts."""
        names = [one.name for one in self.columns for _ in range(_width(one))]
        return names + [""] * sum(len(self._words(group)) for group in self.alike)

    def encode(self, values: Mapping[str, Any]) -> Floats:
        """Return the features of n designs, (n, f)."""
        parts = [part for one in self.columns for part in _features(one, values[one.name])]
        for group in self.alike:
            parts += self._counts(group, values)
        return np.stack(parts, axis=1) if parts else np.zeros((_size(values), 0))

    def directions(self, monotone: Mapping[str, int]) -> list[int]:
        """Return the direction of each feature: 1 rising, -1 falling, 0 free."""
        numbers = {one.name for one in self.columns if isinstance(one, NumberColumn)}
        found = list[int]()
        for one in self.columns:
            first = monotone.get(one.name, 0) if one.name in numbers else 0
            found += [first, *[0] * (_width(one) - 1)]
        return found + [0] * (len(self.sources) - len(found))

    def _counts(self, group: Sequence[str], values: Mapping[str, Any]) -> list[Floats]:
        by_name = {one.name: one for one in self.columns if isinstance(one, TextColumn)}
        counts = []
        for word in self._words(group):
            count = np.zeros(_size(values))
            for name in group:
                if word in by_name[name].words:
                    count += values[name] == by_name[name].words.index(word)
            counts.append(count)
        return counts

    def _words(self, group: Sequence[str]) -> list[str]:
        columns = [one for one in self.columns if one.name in group]
        return sorted({w for one in columns if isinstance(one, TextColumn) for w in one.words})


def is_constant(column: InputColumn) -> bool:
    """Return whether all runs have the same value, so that a column has no information."""
    if isinstance(column, TextColumn):
        return len(column.words) + column.may_be_absent <= 1
    return not column.may_be_absent and column.least == column.largest


def _is_logarithmic(column: NumberColumn) -> bool:
    return column.least > 0 and column.largest >= _WIDE * column.least


def _width(column: InputColumn) -> int:
    if isinstance(column, TextColumn):
        return len(column.words) + column.may_be_absent
    return 1 + column.may_be_absent


def _features(column: InputColumn, values: Floats | Ints) -> list[Floats]:
    if isinstance(column, TextColumn):
        codes = [*range(len(column.words)), *([-1] if column.may_be_absent else [])]
        return [(values == code).astype(np.float64) for code in codes]
    gone = np.isnan(values)
    if _is_logarithmic(column):
        low, high = np.log(column.least), np.log(column.largest)
        scaled = np.log(np.maximum(values, column.least / _WIDE))
    else:
        low, high, scaled = column.least, column.largest, values.astype(np.float64)
    unit = (scaled - low) / ((high - low) or 1.0)
    first = np.where(gone | np.isinf(unit), 0.5, unit)
    return [first, gone.astype(np.float64)] if column.may_be_absent else [first]


def _alike_columns(columns: Sequence[TextColumn]) -> list[tuple[str, ...]]:
    groups = list[list[TextColumn]]()
    for one in columns:
        if is_constant(one) or len(one.words) < 3:
            continue
        near = (group for group in groups if _share(group[0].words, one.words) >= _ALIKE)
        group = next(near, None)
        if group is None:
            groups.append([one])
        else:
            group.append(one)
    return [tuple(one.name for one in group) for group in groups if len(group) > 1]


def _share(left: Sequence[str], right: Sequence[str]) -> float:
    return len({*left} & {*right}) / len({*left} | {*right})


def _size(values: Mapping[str, Any]) -> int:
    return len(next(iter(values.values()))) if values else 0
