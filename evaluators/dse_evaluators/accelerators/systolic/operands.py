"""DRAM reads of a layer's two operands, under the reuse regimes of :mod:`.full`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import assert_never

import numpy as np

from dse.core.values import Floats
from dse_evaluators.accelerators.systolic.codes import word_bits
from dse_evaluators.accelerators.systolic.compressed import inputs_per_row, stored_bits
from dse_evaluators.accelerators.systolic.knobs import Settings
from dse_evaluators.accelerators.systolic.products import LayerProducts
from dse_evaluators.accelerators.systolic.schedule import Flow, Schedule


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """Bytes of an input, a weight and a partial sum; every field is (n,) or (1,)."""

    input: Floats
    weight: Floats  # or (l, n), where some right-hand operands are activations
    """Mean bytes per weight as stored and moved: compressed where that is smaller."""
    partial: Floats


def words(knobs: Settings) -> Words:
    """Return the bytes of an input, a weight and a partial sum in these designs."""
    weight = stored_bits(word_bits(knobs.weight_format), knobs.n_m, knobs.sparsity)
    return Words(
        input=word_bits(knobs.activation_format) / 8.0,
        weight=weight / 8.0,
        partial=knobs.accumulator_bits / 8.0,
    )


def input_bytes(
    flow: Flow, product: LayerProducts, schedule: Schedule, *, knobs: Settings, word: Words
) -> Floats:
    """Return the bytes of one GEMM's inputs read from DRAM, over all passes."""
    half = knobs.ifmap_sram / 2.0
    once = product.inputs * word.input
    per_pass = product.m * product.window * word.input
    if flow != "ws":
        per_pass = np.where(product.window_rows * word.input <= half, once, per_pass)
    return np.where(once <= half, once, per_pass * schedule.input_passes)


def right_bytes(
    flow: Flow, product: LayerProducts, schedule: Schedule, *, knobs: Settings, word: Words
) -> Floats:
    """Return the bytes of one GEMM's right-hand operand read from DRAM if it is not resident."""
    repeated = np.minimum(knobs.cols, product.n) if flow == "os" else product.n
    fits = product.k * repeated * word.weight <= knobs.filter_sram / 2.0
    return product.k * product.n * word.weight * np.where(fits, 1.0, schedule.filter_passes)


def first_bytes(flow: Flow, schedule: Schedule, knobs: Settings, word: Words) -> Floats:
    """Return the bytes that must arrive before the array can begin.

    These are the first fold of the stationary operand and one edge of the other, or one edge of
    each if outputs are stationary.
    """
    down = np.minimum(knobs.rows, schedule.down)
    across = np.minimum(knobs.cols, schedule.across)
    inputs = word.input * inputs_per_row(knobs.n_m)
    match flow:
        case "os":
            return down * inputs + across * word.weight
        case "ws":
            return down * across * word.weight + down * inputs
        case "is":
            return down * across * inputs + down * word.weight
        case _:
            assert_never(flow)
