"""The words that the array exchanges with each buffer in one cycle."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dse.core.values import Floats
from dse_evaluators.accelerators.codes import word_bits
from dse_evaluators.accelerators.knobs import FLOW_CODES, Settings
from dse_evaluators.accelerators.technology import ACCUMULATOR_BITS


@dataclass(frozen=True, slots=True, kw_only=True)
class Edges:
    """Bits of one cycle's words at each edge of the array; (n,) or (1,)."""

    ifmap_bits: Floats
    filter_bits: Floats
    ofmap_bits: Floats


def edges(knobs: Settings) -> Edges:
    """How wide the edges of these designs are: what stays in the array enters down its columns."""
    inputs, weights = word_bits(knobs.activation_format), word_bits(knobs.weight_format)
    inputs_stay = knobs.dataflow == FLOW_CODES["is"]
    outputs_stay = knobs.dataflow == FLOW_CODES["os"]
    return Edges(
        ifmap_bits=np.where(inputs_stay, knobs.cols, knobs.rows) * inputs,
        filter_bits=np.where(inputs_stay, knobs.rows, knobs.cols) * weights,
        ofmap_bits=knobs.cols * np.where(outputs_stay, inputs, ACCUMULATOR_BITS),
    )
