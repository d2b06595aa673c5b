"""Scaling of input channels before weights are quantized: AWQ and SmoothQuant."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dse.errors import EvaluationError
from dse_evaluators.compression.operators import dense, rescaled
from dse_evaluators.compression.operators.inputs import check_inputs, output_error
from dse_evaluators.compression.operators.record import Record, Store, table_of
from dse_evaluators.compression.operators.rescaled import rescale_weights
from dse_evaluators.formats.arrays import Single

_TRIED = 20

_LEAST_MEAN = 1e-4

_LEAST_MAGNITUDE = 1e-5


@dataclass(frozen=True, slots=True)
class Awq:
    """AWQ encoder: scales weights by the magnitude of their inputs, then stores them in a format.

    The factors are a power of the inputs' mean magnitudes; the exponent is the best of twenty from
    0 (plain rounding) to 0.95, by the output error on the calibration inputs. Clipping, which the
    paper's code searches after that, is left to the format (``scale=mse``).

    Source:
        Lin et al., AWQ: Activation-aware Weight Quantization for On-Device LLM Compression and
        Acceleration, 2024, section 3.2, eq. 4-5.
    """

    text: str

    def __call__(self, weight: Single, inputs: Single) -> Record:
        """Encode a layer's weights, (outputs, ...), by calibration inputs, (n, inputs).

        Raises:
            EvaluationError: the inputs do not fit the layer.
        """
        check_inputs(table_of(weight), inputs)
        means = np.abs(inputs.astype(np.float64)).mean(axis=0)
        tried = [
            rescaled.rescale_weights(
                weight,
                rescaled.centre_factors(np.maximum(means**power, _LEAST_MEAN)),
                dense.Dense(self.text),
            )
            for power in np.arange(_TRIED) / _TRIED
        ]
        return min(tried, key=lambda record: output_error(weight, _restore_weights(record), inputs))


def _restore_weights(record: Record) -> Single:
    larger, factors = (dense.read_record(part, ()) for part in record.parts)
    return rescaled.read_record(record, (larger, factors))


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
    signals = np.maximum(np.abs(inputs).max(axis=0), _LEAST_MAGNITUDE).astype(np.float64)
    weights = np.maximum(np.abs(table).max(axis=0), _LEAST_MAGNITUDE).astype(np.float64)
    return (signals**strength / weights ** (1 - strength)).astype(np.float32)


def smooth_layer(weight: Single, inputs: Single, store: Store, *, strength: float = 0.5) -> Record:
    """Encode a layer with smoothing factors in its weights; its inputs must be divided by them.

    Raises:
        EvaluationError: the inputs do not fit, or the strength is not in 0 to 1.
    """
    return rescale_weights(weight, smoothing(weight, inputs, strength), store)
