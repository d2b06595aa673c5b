"""Readings that are numbers, as a table; an option of the same name settles one for all designs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from dse.core.batch import Batch
from dse.core.values import Floats, Value
from dse_evaluators.hardware.amounts import amount
from dse_evaluators.readings import Check, check_readings, number


class Reading(NamedTuple):
    """What a number may be; without a default it is needed."""

    low: float
    high: float
    unit: str = ""
    default: float | None = None
    whole: bool = False


@dataclass(frozen=True, slots=True)
class Readings:
    """A table of readings, some of which are settled."""

    table: Mapping[str, Reading]
    settled: Mapping[str, float]

    @staticmethod
    def of(table: Mapping[str, Reading], owner: object) -> Readings:
        """The table, with what the owner's attributes of these names tell where they are not None.

        Raises:
            SpecError: an attribute is no such number, or has another unit.
        """
        told = {name: getattr(owner, name, None) for name in table}
        settled = {
            name: amount(name, value, table[name].unit)
            for name, value in told.items()
            if value is not None
        }
        readings = Readings(table, settled)
        check_readings({name: (value,) for name, value in settled.items()}, readings.checks)
        return readings

    @property
    def reads(self) -> frozenset[str]:
        return frozenset(name for name, one in self._free.items() if one.default is None)

    @property
    def optional(self) -> frozenset[str]:
        return frozenset(self._free) - self.reads

    @property
    def units(self) -> dict[str, str]:
        return {name: one.unit for name, one in self._free.items() if one.unit}

    @property
    def checks(self) -> dict[str, Check]:
        """For :func:`check_readings`."""
        return {
            name: number(one.low, one.high, whole=one.whole) for name, one in self.table.items()
        }

    def check(
        self, values: Mapping[str, Sequence[Value]], others: Mapping[str, Check] | None = None
    ) -> None:
        """Nothing, if every reading can have all of its values.

        Raises:
            SpecError: one cannot.
        """
        check_readings(values, {**self.checks, **(others or {})})

    def columns(self, batch: Batch) -> dict[str, Floats]:
        """All of them for n designs, (n,) each."""
        return {name: self._column(name, batch) for name in self.table}

    @property
    def _free(self) -> dict[str, Reading]:
        return {name: one for name, one in self.table.items() if name not in self.settled}

    def _column(self, name: str, batch: Batch) -> Floats:
        if name in self.settled:
            return np.full(len(batch), self.settled[name])
        default = self.table[name].default
        found = batch[name] if default is None else batch.get(name, default)
        return np.asarray(found, dtype=np.float64)
