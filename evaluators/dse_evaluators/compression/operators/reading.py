"""Tensors restored from records, for all operators."""

from __future__ import annotations

from collections.abc import Mapping

from dse.errors import EvaluationError, nearest
from dse_evaluators.compression.operators import (
    bloomier,
    corrected,
    cp,
    dense,
    entropy,
    masks,
    products,
    rescaled,
    sparse,
    structured,
    tucker,
    xor,
)
from dse_evaluators.compression.operators.record import Reader, Record
from dse_evaluators.formats.arrays import Single

READERS: Mapping[str, Reader] = {
    dense.KIND: dense.read,
    entropy.KIND: entropy.read,
    sparse.KIND: sparse.read,
    structured.KIND: structured.read,
    products.KIND: products.read,
    tucker.KIND: tucker.read,
    cp.KIND: cp.read,
    xor.KIND: xor.read,
    bloomier.KIND: bloomier.read,
    rescaled.KIND: rescaled.read,
    corrected.KIND: corrected.read,
    **masks.MASK_READERS,
}
"""One reader for each kind of record."""


def restored(record: Record) -> Single:
    """Return the tensor that a record stands for, float32.

    Raises:
        EvaluationError: there is no such kind of record.
    """
    if record.kind not in READERS:
        raise EvaluationError(
            f"no operator reads a compressed tensor of kind {record.kind!r}",
            hint=nearest(record.kind, READERS),
        )
    return READERS[record.kind](record, tuple(restored(part) for part in record.parts))
