"""Canonical Huffman coding of symbols, and of the codes of an array."""

from __future__ import annotations

import heapq
from dataclasses import dataclass

import numpy as np

from dse.core.values import Ints
from dse.errors import EvaluationError
from dse_evaluators.compression.operators import dense
from dse_evaluators.compression.operators.bits import Loose, pack_words, unpack_words
from dse_evaluators.compression.operators.record import Record, Section
from dse_evaluators.formats.arrays import Single, Words
from dse_evaluators.formats.names import format_of

_LENGTH_BITS = 6

_LONGEST = 62  # 64 bits hold every code of fewer than 2 ** 40 symbols

KIND = "entropy"


def encode_symbols(
    symbols: Words,  # (n,), below 2 ** width
    width: int,
) -> tuple[Section, Section]:
    """Encode symbols; return the table of code lengths and the concatenated codes.

    The table has one code length for each symbol up to the largest. Codes are canonical: encoder
    and decoder derive the same codes from the lengths alone.

    Source:
        Huffman, A Method for the Construction of Minimum-Redundancy Codes, 1952; use on weights:
        Han et al., Deep Compression, 2016, section 4.
    """
    counts = np.bincount(symbols, minlength=1)
    lengths = _lengths(counts)
    codes = _canonical(lengths)
    table = np.concatenate(
        [
            unpack_words(np.array([len(lengths) - 1], dtype=np.uint32), width),
            unpack_words(lengths.astype(np.uint32), _LENGTH_BITS),
        ]
    )
    each = lengths[symbols]
    starts = np.concatenate([[0], np.cumsum(each)])
    place = np.arange(starts[-1]) - np.repeat(starts[:-1], each)
    high_first = np.repeat(codes[symbols], each) >> (np.repeat(each, each) - 1 - place)
    bits = (high_first & 1).astype(np.uint8)
    return Section.of("metadata", table), Section.of("payload", bits)


def decode_symbols(table: Section, codes: Section, width: int) -> Words:
    """Decode symbols from the table of code lengths and the concatenated codes."""
    bits = table.loose
    highest = int(pack_words(bits[:width], width)[0]) if width else 0
    lengths = pack_words(bits[width:], _LENGTH_BITS).astype(np.int64)
    if len(lengths) != highest + 1:
        raise EvaluationError("the code table of a compressed tensor is damaged")
    symbols, each = _at_every_bit(codes.loose, lengths)
    after = (np.arange(len(each)) + each).tolist()
    places = []
    place = 0
    while place < len(after):
        places.append(place)
        place = after[place]
    return symbols[places].astype(np.uint32)


def _lengths(counts: Ints) -> Ints:
    """Return the length of each symbol's code, 0 for symbols that do not occur."""
    lengths = np.zeros(len(counts), dtype=np.int64)
    heap: list[tuple[int, int, tuple[int, ...]]] = [
        (int(counts[s]), int(s), (int(s),)) for s in np.flatnonzero(counts)
    ]
    if len(heap) == 1:
        lengths[heap[0][1]] = 1  # with codes of 0 bits the number of symbols would be lost
    heapq.heapify(heap)
    while len(heap) > 1:
        first, low, few = heapq.heappop(heap)
        second, high, many = heapq.heappop(heap)
        lengths[list(few + many)] += 1
        heapq.heappush(heap, (first + second, min(low, high), few + many))
    return lengths


def _canonical(lengths: Ints) -> Ints:
    """Return the canonical code of each symbol, assigned in order of length, then of symbol."""
    codes = np.zeros(len(lengths), dtype=np.int64)
    code, last = 0, 0
    for symbol in np.lexsort((np.arange(len(lengths)), lengths)):
        length = int(lengths[symbol])
        if length:
            code <<= length - last
            codes[symbol] = code
            code, last = code + 1, length
    return codes


def _at_every_bit(bits: Loose, lengths: Ints) -> tuple[Ints, Ints]:
    """Return, for each bit position, the symbol whose code begins there, and its code length."""
    codes = _canonical(lengths)
    padded = np.concatenate([bits, np.zeros(_LONGEST, dtype=np.uint8)]).astype(np.int64)
    symbols = np.zeros(len(bits), dtype=np.int64)
    each = np.zeros(len(bits), dtype=np.int64)
    window = np.zeros(len(bits), dtype=np.int64)
    for length in range(1, int(lengths.max(initial=0)) + 1):
        window = (window << 1) | padded[length - 1 : length - 1 + len(bits)]
        members = np.flatnonzero(lengths == length)
        if len(members):
            first = int(codes[members].min())
            found = (each == 0) & (window >= first) & (window < first + len(members))
            symbols[found] = members[window[found] - first]
            each[found] = length
    each[each == 0] = len(bits) + 1  # no code begins at this bit
    return symbols, each


@dataclass(frozen=True, slots=True)
class Entropy:
    """Encoder that quantizes to a format such as ``kmeans:4`` and Huffman-codes the codes.

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
                *encode_symbols(encoded.codes, form.grid.bits),
                Section.of("metadata", sides),
            ),
        )


def read_record(record: Record, _: tuple[Single, ...]) -> Single:
    """Decode a record to its array of numbers."""
    table, codes, sides = record.sections
    width = format_of(record.text).grid.bits
    words = decode_symbols(table, codes, width)
    return dense.decode_array(record, unpack_words(words, width), sides.loose)
