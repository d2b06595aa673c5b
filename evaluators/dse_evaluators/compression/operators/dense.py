"""Dense storage: every element of an array in one number format."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dse_evaluators.compression.operators.bits import Loose
from dse_evaluators.compression.operators.record import Record, Section, Use
from dse_evaluators.formats.arrays import Single
from dse_evaluators.formats.format import Encoded, Format
from dse_evaluators.formats.layout import Axis
from dse_evaluators.formats.names import format_of

KIND = "dense"


@dataclass(frozen=True, slots=True)
class Dense:
    """Encoder that stores arrays in one number format, such as ``int4:group=32``."""

    text: str

    def __call__(self, values: Single) -> Record:
        form = format_of(self.text)
        return of_codes(form, form.encode(values, axis_of(values.shape)))


FP32 = Dense("fp32")
FP16 = Dense("fp16")


def axis_of(shape: tuple[int, ...]) -> Axis:
    """Return the axes of a layer's weights along which scales run: all inputs of an output.

    The result is -1 for vectors, and no axis for a single number.
    """
    return -1 if len(shape) == 1 else tuple(range(1, len(shape)))


def of_codes(form: Format, encoded: Encoded) -> Record:
    """Return the stored form (record) of an array that is already quantized to codes."""
    codes, sides = split(form, encoded)
    use: Use = "fp32" if form.grid.bits == 32 else "payload"
    return Record(
        kind=KIND,
        shape=encoded.shape,
        text=form.name,
        sections=(Section.of(use, codes), Section.of("metadata", sides)),
    )


def read_record(record: Record, _: tuple[Single, ...]) -> Single:
    """Decode the array of numbers that a record of :class:`Dense` stores."""
    codes, sides = (section.loose for section in record.sections)
    return decode_array(record, codes, sides)


def split(form: Format, encoded: Encoded) -> tuple[Loose, Loose]:
    """Return the bits of an encoded array: of its codes, and of its scales and codebooks."""
    size = form.bits(encoded.shape, encoded.axis)
    table = np.frombuffer(form.pack(encoded), dtype=np.uint8)
    bits = np.unpackbits(table, count=size.total, bitorder="little")
    return bits[: size.payload], bits[size.payload :]


def decode_array(record: Record, codes: Loose, sides: Loose) -> Single:
    """Decode an array from the bits of its codes and scales, in the record's shape and format."""
    form = format_of(record.text)
    data = np.packbits(np.concatenate([codes, sides]), bitorder="little").tobytes()
    return form.decode(form.unpack(data, record.shape, axis_of(record.shape)))
