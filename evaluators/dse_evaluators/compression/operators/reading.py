"""Decoding of records to tensors, for all operators."""

from __future__ import annotations

from collections.abc import Mapping

from dse.errors import EvaluationError, nearest
from dse_evaluators.compression.operators import (
    bloomier,
    corrected,
    cp,
    dense,
    huffman,
    masked_codes,
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
    dense.KIND: dense.read_record,
    huffman.KIND: huffman.read_record,
    sparse.KIND: sparse.read_record,
    masked_codes.KIND: masked_codes.read_record,
    structured.KIND: structured.read_record,
    products.KIND: products.read_record,
    tucker.KIND: tucker.read_record,
    cp.KIND: cp.read_record,
    xor.KIND: xor.read_record,
    bloomier.KIND: bloomier.read_record,
    rescaled.KIND: rescaled.read_record,
    corrected.KIND: corrected.read_record,
    **masks.MASK_READERS,
}
"""Decoder of each kind of record."""


def restore_tensor(record: Record) -> Single:
    """Return the tensor that a record decodes to, float32.

    Raises:
        EvaluationError: the kind of the record is unknown.
    """
    if record.kind not in READERS:
        raise EvaluationError(
            f"no operator reads a compressed tensor of kind {record.kind!r}",
            hint=nearest(record.kind, READERS),
        )
    return READERS[record.kind](record, tuple(restore_tensor(part) for part in record.parts))
