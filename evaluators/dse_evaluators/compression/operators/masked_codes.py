"""Masked storage: the kept weights' codes of a format whose scales are those of all columns."""

from __future__ import annotations

import numpy as np

from dse.core.values import Mask
from dse_evaluators.compression.operators import dense
from dse_evaluators.compression.operators.bits import unpack_words
from dse_evaluators.compression.operators.masks import MaskCode, mask_of
from dse_evaluators.compression.operators.record import Record, Section, table_of
from dse_evaluators.formats.arrays import Single
from dse_evaluators.formats.format import Encoded, Format
from dse_evaluators.formats.names import format_of

KIND = "masked"


def round_kept(weight: Single, text: str, places: MaskCode) -> Record:
    """Round pruned weights to a format with the scales of their outputs or groups of inputs.

    Unlike ``SparseStore``, whose formats see the kept weights as one sequence, a channel or group
    of the format is a channel or group of the layer.

    Args:
        weight: pruned weights, (outputs, ...); zeros are not stored.
        text: the format.
        places: encoder of the mask.
    """
    table = table_of(weight)
    form = format_of(text)
    record = places(table != 0)
    encoded = form.encode(table, dense.axis_of(table.shape))
    return of_kept_codes(form, encoded, record, weight.shape)


def of_kept_codes(form: Format, encoded: Encoded, places: Record, shape: tuple[int, ...]) -> Record:
    """Return a compressed matrix: its mask, all scales, and the codes of nonzero weights only.

    Args:
        form: the number format.
        encoded: codes and scales of all weights of the matrix.
        places: compressed mask of the nonzero weights, (rows, columns).
        shape: shape of the layer's weights.
    """
    kept = encoded.codes.reshape(encoded.shape)[mask_of(places)]
    _, sides = dense.split(form, encoded)
    sections = (
        Section.of_words("payload", kept, form.grid.bits),
        Section.of("metadata", sides),
    )
    return Record(kind=KIND, shape=shape, text=form.name, sections=sections, parts=(places,))


def codes_of(record: Record) -> tuple[Encoded, Mask]:
    """Return a record's codes as a complete table, 0 where no weight is stored, and the mask."""
    form = format_of(record.text)
    mask = mask_of(record.parts[0])
    codes = np.zeros(mask.shape, dtype=np.uint32)
    codes[mask] = record.sections[0].words(form.grid.bits)
    bits = np.concatenate([unpack_words(codes.ravel(), form.grid.bits), record.sections[1].loose])
    data = np.packbits(bits, bitorder="little").tobytes()
    return form.unpack(data, mask.shape, dense.axis_of(mask.shape)), mask


def read_record(record: Record, _: tuple[Single, ...]) -> Single:
    """Decode the kept weights, with zeros at all other positions."""
    encoded, mask = codes_of(record)
    values = format_of(record.text).decode(encoded)
    return np.where(mask, values, np.float32(0)).reshape(record.shape)
