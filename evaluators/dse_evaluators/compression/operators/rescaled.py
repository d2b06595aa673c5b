"""Weights whose input channels are scaled by factors before they are encoded."""

from __future__ import annotations

import numpy as np

from dse.core.values import Floats
from dse.errors import EvaluationError
from dse_evaluators.compression.operators.dense import FP32
from dse_evaluators.compression.operators.record import Record, Store, table_of
from dse_evaluators.formats.arrays import Single

KIND = "rescaled"


def rescale_weights(
    weight: Single,
    factors: Single,  # (inputs,)
    store: Store,
) -> Record:
    """Encode a layer's weights multiplied by a factor per input channel, and the factors.

    If the layer before can absorb the factors (a norm, or a linear layer without an activation in
    between) the factors need no storage; here they are always stored, in single precision, and
    counted.

    Raises:
        EvaluationError: the factors are not positive, or there is not one for each input.
    """
    table = table_of(weight)
    if factors.shape != (table.shape[1],) or not (factors > 0).all():
        raise EvaluationError(f"{table.shape[1]} inputs need as many positive factors")
    larger = (table * factors).astype(np.float32).reshape(weight.shape)
    return Record(
        kind=KIND, shape=weight.shape, parts=(store(larger), FP32(factors.astype(np.float32)))
    )


def read_record(record: Record, parts: tuple[Single, ...]) -> Single:
    """Decode weights that were stored multiplied by a factor per input channel."""
    larger, factors = parts
    table = larger.reshape(len(larger), -1)
    return (table / factors).astype(np.float32).reshape(record.shape)


def centre_factors(factors: Floats) -> Single:
    """Scale factors so that the geometric mean of the smallest and the largest is one."""
    middle = np.sqrt(factors.max() * factors.min())
    return (factors / middle).astype(np.float32)
