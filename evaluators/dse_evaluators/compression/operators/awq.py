"""AWQ: finer quantization of weights whose input channels have large values."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dse_evaluators.compression.operators import dense, rescaled
from dse_evaluators.compression.operators.inputs import check_inputs, output_error
from dse_evaluators.compression.operators.record import Record, table_of
from dse_evaluators.formats.arrays import Single

_TRIED = 20
_LEAST = 1e-4


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
                rescaled.centre_factors(np.maximum(means**power, _LEAST)),
                dense.Dense(self.text),
            )
            for power in np.arange(_TRIED) / _TRIED
        ]
        return min(tried, key=lambda record: output_error(weight, _restore_weights(record), inputs))


def _restore_weights(record: Record) -> Single:
    larger, factors = (dense.read_record(part, ()) for part in record.parts)
    return rescaled.read_record(record, (larger, factors))
