"""Operators for a residual stream without the directions that vary least (SliceGPT)."""

from __future__ import annotations

import numpy as np

from dse_evaluators.compression.operators.dense import FP32
from dse_evaluators.compression.operators.inputs import check_inputs, moments
from dse_evaluators.compression.operators.products import check_rank
from dse_evaluators.compression.operators.record import Record, Store, table_of
from dse_evaluators.formats.arrays import Single


def basis(
    signals: Single,  # (n, d)
    kept: int,
) -> Single:
    """Return the ``kept`` principal directions of the residual stream, (d, kept), largest first.

    With all directions kept, the outputs of a network with RMSNorm do not change, since a rotation
    preserves the root mean square.

    Source:
        Ashkboos et al., SliceGPT: Compress Large Language Models by Deleting Rows and Columns,
        2024, section 3.

    Raises:
        EvaluationError: there are no samples of the stream, or ``kept`` is not from 1 to d.
    """
    check_inputs(table_of(signals), signals)
    check_rank(kept, signals.shape[1])
    _, axes = np.linalg.eigh(moments(signals))
    return np.ascontiguousarray(axes[:, ::-1][:, :kept], dtype=np.float32)


def reading(weight: Single, directions: Single, store: Store = FP32) -> Record:
    """Encode a layer whose input, the residual stream, is projected on fewer directions.

    Raises:
        EvaluationError: the directions do not have the width of the stream.
    """
    table = table_of(weight)
    check_inputs(table, directions.T)
    return store(_times(table, directions))


def writing(weight: Single, directions: Single, store: Store = FP32) -> Record:
    """Encode a layer that writes the residual stream with fewer directions, (kept, inputs).

    Raises:
        EvaluationError: the directions do not have the width of the stream.
    """
    table = table_of(weight)
    check_inputs(table.T, directions.T)
    return store(_times(directions.T, table))


def crossing(before: Single, after: Single, store: Store = FP32) -> Record:
    """Encode the matrix that maps the residual from one block's directions to the next's.

    Raises:
        EvaluationError: the directions before and after have different widths.
    """
    check_inputs(after.T, before.T)
    return store(_times(after.T, before))


def _times(left: Single, right: Single) -> Single:
    return (left.astype(np.float64) @ right).astype(np.float32)
