"""The words that the array exchanges with each buffer in one cycle."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dse.core.values import Floats
from dse_evaluators.accelerators.systolic.codes import word_bits
from dse_evaluators.accelerators.systolic.compressed import inputs_per_row
from dse_evaluators.accelerators.systolic.knobs import FLOW_CODES, Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Edges:
    """Bits of one cycle's words at each edge of the array; (n,) or (1,)."""

    ifmap_bits: Floats
    filter_bits: Floats
    ofmap_bits: Floats
    accumulator_bits: Floats


def edges(knobs: Settings, *, weighted: bool) -> Edges:
    """Return the edge widths of these designs.

    The operand that stays in the array enters down its columns.

    Where weights are left out, inputs come in numbers to choose from. Where not all right-hand
    sides are ``weighted``, activations come in on the side of the filters too.
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
