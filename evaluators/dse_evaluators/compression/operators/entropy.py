"""Array in a number format with Huffman-coded codes."""

from __future__ import annotations

from dataclasses import dataclass

from dse_evaluators.compression.operators import dense, huffman
from dse_evaluators.compression.operators.bits import unpack_words
from dse_evaluators.compression.operators.record import Record, Section
from dse_evaluators.formats.arrays import Single
from dse_evaluators.formats.names import format_of

KIND = "entropy"


@dataclass(frozen=True, slots=True)
class Entropy:
    """Encoder that stores arrays in a format such as ``kmeans:4``, with Huffman-coded codes.

    With ``kmeans`` for kept weights and Huffman-coded gaps between them it is Deep Compression.

    Source:
        Han et al., Deep Compression: Compressing Deep Neural Networks with Pruning, Trained
        Quantization and Huffman Coding, 2016, sections 3 and 4.
    """

    text: str

    def __call__(self, values: Single) -> Record:
        form = format_of(self.text)
        encoded = form.encode(values, dense.axis_of(values.shape))
        _, sides = dense.split(form, encoded)
        return Record(
            kind=KIND,
            shape=values.shape,
            text=form.name,
            sections=(
                *huffman.encode_symbols(encoded.codes, form.grid.bits),
                Section.of("metadata", sides),
            ),
        )


def read_record(record: Record, _: tuple[Single, ...]) -> Single:
    """Decode a record to its array of numbers."""
    table, codes, sides = record.sections
    width = format_of(record.text).grid.bits
    words = huffman.decode_symbols(table, codes, width)
    return dense.decode_array(record, unpack_words(words, width), sides.loose)
