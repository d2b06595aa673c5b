"""Record of a compressed tensor: its bits by purpose, and its serialization to bytes."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from dse.errors import EvaluationError
from dse_evaluators.compression.operators.bits import Loose, pack_words, unpack_words
from dse_evaluators.formats.arrays import Single, Words

Use = Literal["payload", "metadata", "fp32"]
_USES: tuple[Use, ...] = ("payload", "metadata", "fp32")


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageCost:
    """Number of bits of a serialized record by purpose; together they are all its bits."""

    payload: int = 0  # codes of weights
    metadata: int = 0  # scales, codebooks, positions, code tables
    fp32: int = 0  # values in single precision
    header: int = 0  # shapes and counts, which decoding requires
    padding: int = 0  # up to whole bytes

    @property
    def total(self) -> int:
        """Total number of bits of the record, over all purposes."""
        return self.payload + self.metadata + self.fp32 + self.header + self.padding

    @property
    def stored(self) -> int:
        """Number of bits without header and padding, as papers count."""
        return self.payload + self.metadata + self.fp32

    def __add__(self, other: StorageCost) -> StorageCost:
        return StorageCost(
            payload=self.payload + other.payload,
            metadata=self.metadata + other.metadata,
            fp32=self.fp32 + other.fp32,
            header=self.header + other.header,
            padding=self.padding + other.padding,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """Sequence of bits that a record stores for one purpose, padded to a full byte."""

    use: Use
    bits: int
    data: bytes

    @staticmethod
    def of(use: Use, bits: Loose) -> Section:
        """Pack bits into a section of a record for the given purpose."""
        data = np.packbits(bits, bitorder="little").tobytes()
        return Section(use=use, bits=len(bits), data=data)

    @staticmethod
    def of_words(use: Use, words: Words, width: int) -> Section:
        """Pack the low ``width`` bits of each integer code into a section."""
        return Section.of(use, unpack_words(words, width))

    @property
    def loose(self) -> Loose:
        """Bits of the section as an array with one element, 0 or 1, per bit."""
        table = np.frombuffer(self.data, dtype=np.uint8)
        return np.unpackbits(table, count=self.bits, bitorder="little")

    def words(self, width: int) -> Words:
        """Return the section's bits as integer codes of ``width`` bits."""
        return pack_words(self.loose, width)


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """Stored form of a compressed tensor, possibly composed of other records (``parts``).

    Invariants: the bytes decode to an equal record; their size is the total of :attr:`cost`.
    """

    kind: str  # selects the decoder
    shape: tuple[int, ...]
    text: str = ""
    settings: tuple[int, ...] = ()
    sections: tuple[Section, ...] = ()
    parts: tuple[Record, ...] = ()

    @property
    def cost(self) -> StorageCost:
        """Number of bits of the record and of the records in it, by purpose."""
        uses = dict.fromkeys(_USES, 0)
        for section in self.sections:
            uses[section.use] += section.bits
        padding = sum(-section.bits % 8 for section in self.sections)
        own = StorageCost(header=8 * len(self._header()), padding=padding, **uses)
        return sum((part.cost for part in self.parts), start=own)

    def to_bytes(self) -> bytes:
        """Return the serialized record, including the records in it."""
        data = (section.data for section in self.sections)
        return b"".join((self._header(), *data, *(part.to_bytes() for part in self.parts)))

    @staticmethod
    def from_bytes(data: bytes) -> Record:
        """Return the record that was serialized to the given bytes.

        Raises:
            EvaluationError: there are too few bytes, or too many.
        """
        reader = _Reader(data)
        record = _read_record(reader)
        if reader.left:
            raise EvaluationError(f"{reader.left} bytes are left over after a compressed tensor")
        return record

    def _header(self) -> bytes:
        kind, text = self.kind.encode("ascii"), self.text.encode("utf-8")
        table = (value for section in self.sections for value in _describe_section(section))
        return struct.pack(
            f"<B{len(kind)}sH{len(text)}sB{len(self.shape)}IB{len(self.settings)}q"
            f"B{'BQ' * len(self.sections)}H",
            *(len(kind), kind, len(text), text, len(self.shape), *self.shape),
            *(len(self.settings), *self.settings, len(self.sections), *table, len(self.parts)),
        )


Store = Callable[[Single], Record]
"""Encoder of an array; operators that produce smaller arrays take one to store them."""

Reader = Callable[[Record, tuple[Single, ...]], Single]
"""Decoder of one kind of record, given the decoded parts."""

Layers = Mapping[str, Single]
"""Weights by layer name."""


def table_of(weight: Single) -> Single:
    """Return the weights as a table with one row for each filter or output, (rows, columns).

    Raises:
        EvaluationError: there are no weights, fewer than two axes, or a weight is not finite.
    """
    if weight.ndim < 2 or weight.size == 0:
        raise EvaluationError(f"weights of {weight.shape} are not a table of outputs and inputs")
    if not np.isfinite(weight).all():
        raise EvaluationError("a weight is infinite or not a number")
    return weight.astype(np.float32).reshape(len(weight), -1)


def _describe_section(section: Section) -> tuple[int, int]:
    return _USES.index(section.use), section.bits


class _Reader:
    """Sequential reader of a serialized record."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._place = 0

    @property
    def left(self) -> int:
        return len(self._data) - self._place

    def bytes(self, count: int) -> bytes:
        if count > self.left:
            raise EvaluationError(f"a compressed tensor ends {count - self.left} bytes too early")
        start, self._place = self._place, self._place + count
        return self._data[start : self._place]

    def numbers(self, letters: str) -> tuple[int, ...]:
        form = struct.Struct(f"<{letters}")
        return form.unpack(self.bytes(form.size))

    def number(self, letter: str) -> int:
        return self.numbers(letter)[0]


def _read_record(reader: _Reader) -> Record:
    kind = reader.bytes(reader.number("B")).decode("ascii")
    text = reader.bytes(reader.number("H")).decode("utf-8")
    shape = reader.numbers(f"{reader.number('B')}I")
    settings = reader.numbers(f"{reader.number('B')}q")
    heads = [reader.numbers("BQ") for _ in range(reader.number("B"))]
    parts = reader.number("H")
    return Record(
        kind=kind,
        shape=shape,
        text=text,
        settings=settings,
        sections=tuple(
            Section(use=_USES[use], bits=bits, data=reader.bytes(-(-bits // 8)))
            for use, bits in heads
        ),
        parts=tuple(_read_record(reader) for _ in range(parts)),
    )
