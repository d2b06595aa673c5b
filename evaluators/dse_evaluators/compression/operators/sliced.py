"""A residual stream of fewer numbers: the directions that vary least are cut off."""

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
    """The directions in which the stream varies most, the strongest first, (d, kept).

    With all of them a network whose norms are RMSNorm computes what it did, since a rotation
    leaves the root mean square as it is.

    Source:
        Ashkboos et al., SliceGPT: Compress Large Language Models by Deleting Rows and Columns,
        2024, section 3.

    Raises:
        EvaluationError: there are no signals, or fewer directions than are kept.
    """
    check_inputs(table_of(signals), signals)
    check_rank(kept, signals.shape[1])
    _, axes = np.linalg.eigh(moments(signals))
    return np.ascontiguousarray(axes[:, ::-1][:, :kept], dtype=np.float32)


def reading(weight: Single, directions: Single, store: Store = FP32) -> Record:
    """A layer, (outputs, d), that reads the sliced stream: (outputs, kept) are stored.

    Raises:
        EvaluationError: the directions are of another stream.
    """
    table = table_of(weight)
    check_inputs(table, directions.T)
    return store(_times(table, directions))


def writing(weight: Single, directions: Single, store: Store = FP32) -> Record:
    """A layer, (d, inputs), that writes the sliced stream: (kept, inputs) are stored.

    Raises:
        EvaluationError: the directions are of another stream.
    """
    table = table_of(weight)
    check_inputs(table.T, directions.T)
    return store(_times(directions.T, table))


def crossing(before: Single, after: Single, store: Store = FP32) -> Record:
    """Return the map of the residual from one block's directions to the next's.

    Raises:
        EvaluationError: the directions are of two streams.
    """
    check_inputs(after.T, before.T)
    return store(_times(after.T, before))


def _times(left: Single, right: Single) -> Single:
    return (left.astype(np.float64) @ right).astype(np.float32)
