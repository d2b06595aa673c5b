"""Widths of the array's edges: bits exchanged with each buffer per cycle."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dse.core.values import Floats
from dse_evaluators.accelerators.systolic.codes import word_bits
from dse_evaluators.accelerators.systolic.compressed import inputs_per_row
from dse_evaluators.accelerators.systolic.knobs import FLOW_CODES, Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Edges:
    """Bits per cycle at each edge of the array; every field is (n,) or (1,)."""

    ifmap_bits: Floats
    filter_bits: Floats
    ofmap_bits: Floats
    accumulator_bits: Floats


def edges(knobs: Settings, *, weighted: bool) -> Edges:
    """Return the bits per cycle that the designs' arrays exchange with each buffer.

    The stationary operand is loaded down the columns of the array. With N:M sparsity, each row
    receives several inputs per weight, from which it selects. Unless all right-hand operands are
    ``weighted``, the filter edge carries activations too and has the width of the wider format.
    """
    inputs, weights = word_bits(knobs.activation_format), word_bits(knobs.weight_format)
    right = weights if weighted else np.maximum(weights, inputs)
    inputs_stay = knobs.dataflow == FLOW_CODES["is"]
    outputs_stay = knobs.dataflow == FLOW_CODES["os"]
    choice = inputs_per_row(knobs.n_m)
    return Edges(
        ifmap_bits=np.where(inputs_stay, knobs.cols, knobs.rows) * inputs * choice,
        filter_bits=np.where(inputs_stay, knobs.rows, knobs.cols) * right,
        ofmap_bits=knobs.cols * np.where(outputs_stay, inputs, knobs.accumulator_bits),
        accumulator_bits=knobs.cols * knobs.accumulator_bits,
    )
