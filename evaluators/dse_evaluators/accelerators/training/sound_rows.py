"""Faults of designs whose inputs, such as metrics of other evaluators, are out of range."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from dse.core.metric import Failure
from dse.core.values import Floats
from dse_evaluators.alike import infeasible
from dse_evaluators.reading_table import NumberInput, Readings, number_of


def sound(
    readings: Readings, columns: Mapping[str, Floats]
) -> tuple[dict[str, Floats], dict[int, Failure]]:
    """Replace inputs out of range by defaults, and return the designs that had any.

    The columns of inputs are returned with the reasons of the invalid designs by index, so that all
    designs can be evaluated together.

    Args:
        readings: the evaluator's declared inputs with their ranges; each must have a default.
        columns: the values of each input over n designs, (n,).
    """
    failures: dict[int, Failure] = {}
    for name, one in readings.table.items():
        if isinstance(one, NumberInput):
            failures = {**_outside(name, one, columns[name]), **failures}
    rows = list(failures)
    found = {name: column.copy() for name, column in columns.items()}
    for name, one in readings.table.items():
        assert one.default is not None
        found[name][rows] = number_of(one, one.default)
    return found, failures


def _outside(name: str, one: NumberInput, column: Floats) -> dict[int, Failure]:
    takes = f"from {one.low:.9g} to {one.high:.9g} {one.unit}".strip()
    outside = ~((column >= one.low) & (column <= one.high))
    return infeasible(np.asarray(outside), lambda row: f"{name} is {column[row]:g}, not {takes}")
