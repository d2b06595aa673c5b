"""Weight matrices stored as the product of two low-rank factors."""

from __future__ import annotations

import numpy as np

from dse.core.values import Floats
from dse.errors import EvaluationError
from dse_evaluators.compression.operators.record import Record, Store
from dse_evaluators.formats.arrays import Single

KIND = "product"


def product(
    left: Floats,  # (outputs, r)
    right: Floats,  # (r, inputs)
    shape: tuple[int, ...],
    store: Store,
) -> Record:
    """Return the record (stored form) of a matrix as the product of two encoded factors."""
    parts = tuple(store(np.ascontiguousarray(side, dtype=np.float32)) for side in (left, right))
    return Record(kind=KIND, shape=shape, parts=parts)


def check_rank(rank: int, most: int) -> None:
    """Check that a rank is from 1 to ``most``.

    Raises:
        EvaluationError: the rank is out of this range.
    """
    if not 1 <= rank <= most:
        raise EvaluationError(f"a rank of {rank} is not in 1 to {most}")


def read_record(record: Record, parts: tuple[Single, ...]) -> Single:
    """Decode a matrix as the product of its two stored factors."""
    left, right = (part.astype(np.float64) for part in parts)
    return (left @ right).astype(np.float32).reshape(record.shape)
