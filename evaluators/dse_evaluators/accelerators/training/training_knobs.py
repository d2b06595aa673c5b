"""Knobs with defaults: what the study's options set, else the design, else the default."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dse.core.batch import Batch
from dse.core.metric import Fault
from dse.core.values import Floats, Value
from dse.errors import EvaluationError, SpecError, nearest
from dse.units import converted, quantity


@dataclass(frozen=True, slots=True, kw_only=True)
class Knob:
    """A number from ``least`` to ``most``, or with ``words`` one of them, kept as its code."""

    default: Value
    unit: str = ""
    least: float = 0.0
    most: float = math.inf
    words: Mapping[Value, float] | None = None

    def code(self, name: str, value: Value) -> float:
        """A setting as a number; a text such as ``10 MiB`` in the knob's unit.

        Raises:
            SpecError: it is none that the knob takes.
        """
        if self.words is not None:
            if value not in self.words:
                hint = nearest(str(value), map(str, self.words))
                raise SpecError(f"{name} cannot be {value!r}", hint=hint)
            return self.words[value]
        number = _number(value, self.unit)
        if number is None or not self.least <= number <= self.most:
            raise SpecError(f"{name} cannot be {value!r}", hint=self.range)
        return number

    @property
    def range(self) -> str:
        """What it takes, in words."""
        return f"from {self.least:.9g} to {self.most:.9g} {self.unit}".strip()


class Knobs:
    """A table of knobs, some of which a study's options have ``given`` a value.

    Raises:
        SpecError: there is no such knob, or it does not take such a value.
    """

    def __init__(self, table: Mapping[str, Knob], given: Mapping[str, Value]) -> None:
        for name in given:
            if name not in table:
                raise SpecError(f"there is no knob {name!r}", hint=nearest(name, table))
        self._table = table
        self._given = {name: table[name].code(name, value) for name, value in given.items()}
        self.free = frozenset(table) - given.keys()
        self.units = {name: table[name].unit for name in sorted(self.free) if table[name].unit}

    def check(self, values: Mapping[str, Sequence[Value]]) -> None:
        """Nothing, if every knob takes all of these values. Raises SpecError if not."""
        for name in sorted(self.free & values.keys()):
            for value in values[name]:
                self._table[name].code(name, value)

    def column(self, name: str, batch: Batch) -> Floats:
        """What the designs set a knob to, (n,).

        Raises:
            EvaluationError: a word is none that the knob takes.
        """
        knob = self._table[name]
        if name in self._given:
            return np.full(len(batch), self._given[name])
        default = knob.code(name, knob.default)
        if knob.words is None:
            return np.asarray(batch.get(name, default), dtype=np.float64)
        try:
            return batch.lookup(name, knob.words, default)
        except KeyError as error:
            raise EvaluationError(f"{name} cannot be {error.args[0]!r}") from error

    def columns(self, batch: Batch) -> dict[str, Floats]:
        """All knobs, each (n,)."""
        return {name: self.column(name, batch) for name in self._table}

    def sound(
        self, columns: Mapping[str, Floats], faults: Mapping[int, Fault]
    ) -> dict[str, Floats]:
        """The columns with the defaults in rows that have a fault, so that they can be reckoned."""
        rows = list(faults)
        found = {name: column.copy() for name, column in columns.items()}
        for name, knob in self._table.items():
            found[name][rows] = knob.code(name, knob.default)
        return found

    def faults(self, columns: Mapping[str, Floats]) -> dict[int, Fault]:
        """The rows in which a number is none that its knob takes."""
        found: dict[int, Fault] = {}
        for name, knob in self._table.items():
            if knob.words is None:
                fits = (columns[name] >= knob.least) & (columns[name] <= knob.most)
                for row in np.flatnonzero(~fits).tolist():
                    reason = f"{name} is {columns[name][row]:g}, not {knob.range}"
                    found.setdefault(row, Fault(kind="infeasible", reason=reason))
        return found


def _number(value: Value, unit: str) -> float | None:
    if isinstance(value, str):
        told = quantity(value) if unit else None
        return None if told is None else converted(*told, unit)
    return None if isinstance(value, bool) else float(value)
