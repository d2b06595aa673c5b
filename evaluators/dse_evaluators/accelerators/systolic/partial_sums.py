"""Memory that holds partial sums between folds: accumulators, the output buffer or DRAM."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dse.core.values import Floats
from dse_evaluators.accelerators.systolic.knobs import Settings
from dse_evaluators.accelerators.systolic.operands import Words
from dse_evaluators.accelerators.systolic.products import LayerProducts
from dse_evaluators.accelerators.systolic.schedule import Schedule


@dataclass(frozen=True, slots=True, kw_only=True)
class PartialSums:
    """Bytes of one GEMM's final and partial sums, by the memory that holds them, (l, n).

    ``spilled``, ``buffered`` and ``accumulated`` are bytes written; as many are read back.
    """

    final: Floats
    """Final outputs, written once."""
    spilled: Floats
    """Partial sums written to DRAM."""
    buffered: Floats
    """Partial and final sums that pass the output buffer."""
    accumulated: Floats
    """Partial sums kept in dedicated accumulators."""


def partial_sums(
    product: LayerProducts, schedule: Schedule, knobs: Settings, word: Words
) -> PartialSums:
    """Compute the bytes of final and partial sums that pass through each memory.

    Partial sums are kept in the nearest memory that holds the partial sums of one column of folds:
    the accumulators, then half of the output buffer, then DRAM.
    """
    outputs = product.m * product.n
    final = outputs * word.input
    partial = outputs * (schedule.partials - 1.0) * word.partial
    strip = schedule.stream * np.minimum(knobs.cols, schedule.across) * word.partial
    fits = strip <= knobs.ofmap_sram / 2.0
    accumulated = np.zeros((len(outputs), 1))
    if knobs.accumulator_sram.any():
        near = strip <= knobs.accumulator_sram
        accumulated, fits = np.where(near, partial, 0.0), fits | near
    spilled = np.where(fits, 0.0, partial)
    return PartialSums(
        final=final,
        spilled=spilled,
        buffered=final + partial + spilled - accumulated,
        accumulated=accumulated,
    )
