"""Sparse storage: the kept weights and their positions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dse_evaluators.compression.operators.masks import MaskCode, mask_of, smallest
from dse_evaluators.compression.operators.record import Record, Store, table_of
from dse_evaluators.formats.arrays import Single

KIND = "sparse"


@dataclass(frozen=True, slots=True)
class SparseStore:
    """Encoder of a pruned layer: nonzero weights by ``values``, their positions by ``mask``.

    By default, positions are a bitmap, sparse rows or gaps, whichever is smallest. Zeros that a
    block or N:M mask keeps are stored.
    """

    values: Store
    mask: MaskCode = smallest

    def __call__(self, weight: Single) -> Record:
        return mask_weights(weight, self.mask(table_of(weight) != 0), self.values)


def mask_weights(weight: Single, places: Record, values: Store) -> Record:
    """Encode the weights that a mask keeps, together with the mask, as one record."""
    kept = table_of(weight)[mask_of(places)]
    row = (values(kept),) if kept.size else ()
    return Record(kind=KIND, shape=weight.shape, parts=(places, *row))


def read_record(record: Record, parts: tuple[Single, ...]) -> Single:
    """Decode the weights, with zeros at all positions that are not stored."""
    stays = parts[0] != 0
    table = np.zeros(stays.shape, dtype=np.float32)
    if len(parts) > 1:
        table[stays] = parts[1]
    return table.reshape(record.shape)
