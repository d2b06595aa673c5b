"""Serialization of a compressed layer, whose size ``compression.size`` computes without it."""

from __future__ import annotations

import struct

import numpy as np
from numpy.typing import NDArray

from dse_evaluators.compression.quantize import Quantised
from dse_evaluators.compression.size import (
    BIAS_BYTES,
    HEADER_BYTES,
    SCALE_BYTES,
    Shape,
    SparsityEncoding,
)
from dse_evaluators.formats.arrays import Single, Words
from dse_evaluators.formats.words import FORMATS

# Layout, format, number of scales (0, 1, or 2 for one per filter), rank; up to four axis lengths.
_HEADER = struct.Struct("<4B4H")
_SIDES = 4
_NAMES = tuple(FORMATS)


def pack_layer(tensor: Quantised, bias: Single) -> bytes:
    """Serialize a layer and its biases, with the smallest encoding of positions."""
    shape = Shape.of(tensor)
    sides = tensor.words.shape
    layout = shape.layout
    header = _HEADER.pack(
        layout,
        _NAMES.index(tensor.word.name),
        min(len(tensor.scale), 2),
        len(sides),
        *sides,
        *(0,) * (_SIDES - len(sides)),
    )
    table = tensor.words.reshape(shape.rows, shape.columns)
    kept = table if layout is SparsityEncoding.DENSE else table[table != 0]
    return b"".join(
        (
            header,
            tensor.scale.astype("<f4").tobytes(),
            bias.astype("<f4").tobytes(),
            _places(table, shape, layout),
            _bits(kept.ravel(), shape.bits),
        )
    )


def unpack_layer(data: bytes) -> tuple[Quantised, Single]:
    """Deserialize a layer and its biases."""
    layout, name, scaled, rank, *sides = _HEADER.unpack_from(data)
    word = FORMATS[_NAMES[name]]
    side = tuple(sides[:rank])
    rows, columns = side[0], int(np.prod(side[1:]))
    reader = _Reader(data[HEADER_BYTES:])
    scale = reader.singles((0, 1, rows)[scaled], SCALE_BYTES)
    bias = reader.singles(rows, BIAS_BYTES)
    places = _read_places(reader, SparsityEncoding(layout), rows, columns)
    words = np.zeros(rows * columns, dtype=np.uint32)
    words[places] = reader.words(len(places), word.bits)
    return Quantised(words=words.reshape(side), scale=scale, word=word), bias


class _Reader:
    """Sequential reader of the sections of a packed layer."""

    def __init__(self, data: bytes) -> None:
        self._left = data

    def singles(self, count: int, size: int) -> Single:
        return np.frombuffer(self._take(count * size), dtype="<f4").astype(np.float32)

    def words(self, count: int, bits: int) -> Words:
        section = np.frombuffer(self._take(-(-count * bits // 8)), dtype=np.uint8)
        table = np.unpackbits(section, count=count * bits, bitorder="little")
        powers = np.uint32(1) << np.arange(bits, dtype=np.uint32)
        return (table.reshape(count, bits) * powers).sum(axis=1, dtype=np.uint32)

    def _take(self, count: int) -> bytes:
        taken, self._left = self._left[:count], self._left[count:]
        return taken


def _places(table: Words, shape: Shape, layout: SparsityEncoding) -> bytes:
    """Return the positions of the stored codes as bytes; none if every code is stored."""
    if layout is SparsityEncoding.DENSE:
        return b""
    if layout is SparsityEncoding.BITMAP:
        return _bits((table != 0).ravel().astype(np.uint32), 1)
    counts = np.count_nonzero(table, axis=1).astype(np.uint32)
    columns = np.nonzero(table)[1].astype(np.uint32)
    return _bits(counts, shape.count_bits) + _bits(columns, shape.column_bits)


def _read_places(
    reader: _Reader, layout: SparsityEncoding, rows: int, columns: int
) -> NDArray[np.intp]:
    """Return the flat indices of the stored codes, in ascending order."""
    if layout is SparsityEncoding.DENSE:
        return np.arange(rows * columns)
    if layout is SparsityEncoding.BITMAP:
        return np.flatnonzero(reader.words(rows * columns, 1))
    shape = Shape(rows=rows, columns=columns, kept=0, bits=0)
    counts = reader.words(rows, shape.count_bits)
    row = np.repeat(np.arange(rows), counts)
    return row * columns + reader.words(len(row), shape.column_bits)


def _bits(words: Words, bits: int) -> bytes:
    """Return the low ``bits`` bits of each code, concatenated and padded to a whole byte."""
    table = (words[:, None] >> np.arange(bits, dtype=np.uint32)) & np.uint32(1)
    return np.packbits(table.astype(np.uint8).ravel(), bitorder="little").tobytes()
