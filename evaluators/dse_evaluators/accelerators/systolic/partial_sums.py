"""Where operands and partial sums are held between folds, and their DRAM traffic."""

from __future__ import annotations

from dataclasses import dataclass
from typing import assert_never

import numpy as np

from dse.core.values import Floats
from dse_evaluators.accelerators.systolic.compressed import inputs_per_row, stored_bits
from dse_evaluators.accelerators.systolic.matrix_products import LayerProducts
from dse_evaluators.accelerators.systolic.scaled_words import ScaleBits
from dse_evaluators.accelerators.systolic.schedule import Flow, Schedule
from dse_evaluators.accelerators.systolic.systolic_parameters import Settings, word_bits


@dataclass(frozen=True, slots=True, kw_only=True)
class PartialSums:
    """Bytes of one GEMM's final and partial sums by memory, for l layers and n designs, (l, n).

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

    A fold is the block of a GEMM that the array computes at a time. Partial sums are kept in the
    first memory that holds those of one column of folds: accumulators, half of the output buffer,
    DRAM.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """Bytes of an input, a weight and a partial sum; every field is (n,) or (1,).

    Inputs and weights are (l, n) where formats have scales.
    """

    input: Floats
    weight: Floats  # or (l, n), where some right-hand operands are activations
    """Mean bytes per weight as stored and moved: compressed where that is smaller."""
    partial: Floats


def words(knobs: Settings, scales: ScaleBits | None = None) -> Words:
    """Return the bytes per input, per weight and per partial sum in n designs.

    Pruned weights share the scales of the weights that are kept, so that each kept weight carries
    more scale bits.
    """
    weight = stored_bits(word_bits(knobs.weight_format), knobs.n_m, knobs.sparsity)
    inputs = word_bits(knobs.activation_format)
    if scales is not None:
        scale, element = scales.of_designs(knobs.combination)
        if element is not None:
            weight = stored_bits(element, knobs.n_m, knobs.sparsity)
        weight = weight + scale * inputs_per_row(knobs.n_m)
        inputs = inputs + scales.input
    return Words(input=inputs / 8.0, weight=weight / 8.0, partial=knobs.accumulator_bits / 8.0)


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
    """Return the bytes read from DRAM for one GEMM's right-hand operand.

    The operand is assumed not to stay on chip between runs of the network (``resident``).
    """
    repeated = np.minimum(knobs.cols, product.n) if flow == "os" else product.n
    fits = product.k * repeated * word.weight <= knobs.filter_sram / 2.0
    return product.k * product.n * word.weight * np.where(fits, 1.0, schedule.filter_passes)


def first_bytes(flow: Flow, schedule: Schedule, knobs: Settings, word: Words) -> Floats:
    """Return the bytes that DRAM must deliver before the array can start on a GEMM.

    The bytes are those of the first tile of the stationary operand, and the first words of the
    other operand along one edge of the array. If outputs are stationary, they are the first words
    of both operands.
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
