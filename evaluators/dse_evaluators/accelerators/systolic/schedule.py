"""Mapping of a matrix product to a systolic array in folds, with cycles for ideal memory.

A fold is a part of the product that fits the array and is computed at a time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, assert_never

import numpy as np

from dse.core.values import Floats
from dse_evaluators.accelerators.systolic.matrix_products import LayerProducts

Flow = Literal["os", "ws", "is"]
"""Dataflow, named by the operand that is stationary in the array: output, weight or input."""

FLOWS: tuple[Flow, ...] = ("os", "ws", "is")


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """Mapping of GEMMs of l layers to arrays of n designs; every field is (l, n) or (l, 1)."""

    down: Floats
    """Extent of the dimension mapped to the array's rows."""
    across: Floats
    """Extent of the dimension mapped to the array's columns."""
    stream: Floats
    """Extent of the dimension streamed through the array over time."""
    folds: Floats
    fold_cycles: Floats
    input_passes: Floats
    """Number of times that all inputs enter the array."""
    filter_passes: Floats
    """Number of times that all filters enter the array."""
    partials: Floats
    """Number of partial sums that leave the array per output."""

    @property
    def cycles(self) -> Floats:
        """Cycles from the first input word to the last output word, without stalls."""
        return self.folds * self.fold_cycles - 1.0


def schedule_product(flow: Flow, product: LayerProducts, rows: Floats, columns: Floats) -> Schedule:
    """Map a GEMM to n arrays of ``rows`` x ``columns``, each (n,), under a dataflow.

    Source:
        Samajdar et al.: A Systematic Methodology for Characterizing Scalability of DNN
        Accelerators using SCALE-Sim, ISPASS 2020, equations 1-4; SCALE-Sim 3.0.0 counts the last
        cycle from zero, hence ``folds * fold_cycles - 1``.
    """
    match flow:
        case "os":
            down, across, stream, fill = product.m, product.n, product.k, np.zeros(1)
        case "ws":
            down, across, stream, fill = product.k, product.n, product.m, rows
        case "is":
            down, across, stream, fill = product.k, product.m, product.n, rows
        case _:
            assert_never(flow)
    row_folds = np.ceil(down / rows)
    column_folds = np.ceil(across / columns)
    one = np.ones(1)
    return Schedule(
        down=down,
        across=across,
        stream=stream,
        folds=row_folds * column_folds,
        fold_cycles=fill + (rows + columns + stream - 2.0),
        input_passes=one if flow == "is" else column_folds,
        filter_passes={"os": row_folds, "ws": one, "is": column_folds}[flow],
        partials=one if flow == "os" else row_folds,
    )


def mapping_efficiency(schedule: Schedule, rows: Floats, columns: Floats) -> Floats:
    """Return the fraction of the array's elements in use, averaged over the folds (passes)."""
    return schedule.down * schedule.across / (schedule.folds * rows * columns)
