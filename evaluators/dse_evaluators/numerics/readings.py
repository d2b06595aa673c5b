"""Evaluators that measure one design after the other: columns, spread and faults put together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import numpy as np

from dse.core.batch import Batch
from dse.core.metric import Fault, Metrics
from dse.core.values import Value
from dse.errors import DseError, PluginError


def row_by_row(
    batch: Batch,
    names: Iterable[str],
    measured: Callable[[Mapping[str, Value]], Mapping[str, float]],
) -> Metrics:
    """The metrics of each design; an error of ours is the fault of its row alone."""
    columns = {name: np.full(len(batch), np.nan) for name in names}
    faults: dict[int, Fault] = {}
    for row in range(len(batch)):
        try:
            found = measured(batch.row(row))
        except DseError as error:
            faults[row] = Fault(kind="raised", reason=str(error))
            continue
        for name, value in found.items():
            columns[name][row] = value
    return Metrics(columns=columns, faults=faults)


def check_count(name: str, value: object, *, least: int) -> None:
    """Nothing, if the value is a whole number of that size.

    Raises:
        PluginError: it is not.
    """
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise PluginError(f"{name} cannot be {value!r}", hint=f"a whole number, at least {least}")
