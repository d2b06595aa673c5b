"""Quantized layer plus a low-rank correction of its error."""

from __future__ import annotations

import numpy as np

from dse_evaluators.compression.operators.dense import FP16
from dse_evaluators.compression.operators.inputs import check_inputs
from dse_evaluators.compression.operators.products import check_rank, product
from dse_evaluators.compression.operators.record import Record, Store, table_of
from dse_evaluators.compression.operators.svd import factors, whitened_factors
from dse_evaluators.formats.arrays import Single

KIND = "sum"


def correct_layer(
    weight: Single,
    record: Record,
    given: Single,
    rank: int,
    *,
    inputs: Single | None = None,
    store: Store = FP16,
) -> Record:
    """Return a compressed layer plus the best low-rank correction of its error.

    With calibration ``inputs`` the correction minimizes the output error; without, the error of
    the weights. INT2.1 trains the correction on the task, starting from zero; here it is the
    closed-form solution for one layer.

    Args:
        weight: original weights, (outputs, ...).
        record: the same weights, compressed.
        given: weights that ``record`` decodes to.
        rank: rank of the correction.
        inputs: calibration inputs, (n, inputs).
        store: encoder of both factors of the correction.

    Source:
        Chai et al., INT2.1: Towards Fine-Tunable Quantized Large Language Models with Error
        Correction through Low-Rank Adaptation, 2023, section 3 (LREC).

    Raises:
        EvaluationError: the rank is out of range, or the inputs do not fit the layer.
    """
    table = table_of(weight)
    check_rank(rank, min(table.shape))
    lost = table.astype(np.float64) - given.reshape(table.shape)
    if inputs is None:
        left, right = factors(lost, rank)
    else:
        check_inputs(table, inputs)
        left, right = whitened_factors(lost, inputs, rank)
    return Record(
        kind=KIND, shape=weight.shape, parts=(record, product(left, right, weight.shape, store))
    )


def read_record(record: Record, parts: tuple[Single, ...]) -> Single:
    """Decode the quantized weights plus their low-rank correction from a record."""
    return (parts[0] + parts[1]).reshape(record.shape)
