"""SmoothQuant: scaling that reduces large inputs and enlarges the weights they multiply."""

from __future__ import annotations

import numpy as np

from dse.errors import EvaluationError
from dse_evaluators.compression.operators.inputs import check_inputs
from dse_evaluators.compression.operators.record import Record, Store, table_of
from dse_evaluators.compression.operators.rescaled import rescale_weights
from dse_evaluators.formats.arrays import Single

_LEAST = 1e-5


def smoothing(weight: Single, inputs: Single, strength: float = 0.5) -> Single:
    """Return smoothing factors: maximum input over maximum weight, each to a power, (inputs,).

    Args:
        weight: weights of the layer, (outputs, ...).
        inputs: calibration inputs, (n, inputs).
        strength: exponent of the inputs' maximum, 0 to 1; 1 - ``strength`` is that of the weights'
            maximum. 0 leaves the difficulty with the inputs, 1 moves all of it to the weights.

    Source:
        Xiao et al., SmoothQuant: Accurate and Efficient Post-Training Quantization for Large
        Language Models, 2023, eq. 4.

    Raises:
        EvaluationError: the inputs do not fit, or the strength is not in 0 to 1.
    """
    table = table_of(weight)
    check_inputs(table, inputs)
    if not 0 <= strength <= 1:
        raise EvaluationError(f"a strength of {strength} is not in 0 to 1", hint="0.5")
    signals = np.maximum(np.abs(inputs).max(axis=0), _LEAST).astype(np.float64)
    weights = np.maximum(np.abs(table).max(axis=0), _LEAST).astype(np.float64)
    return (signals**strength / weights ** (1 - strength)).astype(np.float32)


def smooth_layer(weight: Single, inputs: Single, store: Store, *, strength: float = 0.5) -> Record:
    """Return the layer with the factors in its weights; its inputs must be divided by them.

    Raises:
        EvaluationError: as for :func:`smoothing`.
    """
    return rescale_weights(weight, smoothing(weight, inputs, strength), store)
