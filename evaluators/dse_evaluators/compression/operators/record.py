"""A compressed tensor as data: what is stored, what for, and the bytes of it."""

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
    """Bits by what they are for; together they are all bits of the bytes."""

    payload: int = 0  # codes of weights
    metadata: int = 0  # scales, codebooks, places, code tables
    fp32: int = 0  # what stays in single precision
    header: int = 0  # shapes and counts, without which the rest cannot be read
    padding: int = 0  # up to whole bytes

    @property
    def total(self) -> int:
        """All bits."""
        return self.payload + self.metadata + self.fp32 + self.header + self.padding

    @property
    def stored(self) -> int:
        """The bits that papers count: no header and no padding."""
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
    """Bits in a row for one use, filled up to a whole byte."""

    use: Use
    bits: int
    data: bytes

    @staticmethod
    def of(use: Use, bits: Loose) -> Section:
        """The section of these bits."""
        data = np.packbits(bits, bitorder="little").tobytes()
        return Section(use=use, bits=len(bits), data=data)

    @staticmethod
    def of_words(use: Use, words: Words, width: int) -> Section:
        """The section of these words."""
        return Section.of(use, unpack_words(words, width))

    @property
    def loose(self) -> Loose:
        """The bits, one a byte."""
        table = np.frombuffer(self.data, dtype=np.uint8)
        return np.unpackbits(table, count=self.bits, bitorder="little")

    def words(self, width: int) -> Words:
        """The bits as words of this width."""
        return pack_words(self.loose, width)


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One compressed tensor; ``parts`` are the tensors that it is put together from.

    Laws: the bytes give the record back, whole; they are as many bits as :attr:`cost` says.
    """

    kind: str  # how it is read
    shape: tuple[int, ...]
    text: str = ""
    settings: tuple[int, ...] = ()
    sections: tuple[Section, ...] = ()
    parts: tuple[Record, ...] = ()

    @property
    def cost(self) -> StorageCost:
        """The bits of it and of all its parts."""
        uses = dict.fromkeys(_USES, 0)
        for section in self.sections:
            uses[section.use] += section.bits
        padding = sum(-section.bits % 8 for section in self.sections)
        own = StorageCost(header=8 * len(self._header()), padding=padding, **uses)
        return sum((part.cost for part in self.parts), start=own)

    def to_bytes(self) -> bytes:
        """All that is needed to read it back."""
        data = (section.data for section in self.sections)
        return b"".join((self._header(), *data, *(part.to_bytes() for part in self.parts)))

    @staticmethod
    def from_bytes(data: bytes) -> Record:
        """The record that the bytes were made of.

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
"""How an array is stored: the operators that leave smaller arrays behind take one for each."""

Reader = Callable[[Record, tuple[Single, ...]], Single]
"""What a record of one kind stands for, given what its parts stand for."""

Layers = Mapping[str, Single]
"""Weights by the names of their layers."""


def table_of(weight: Single) -> Single:
    """The weights with one row for each filter or output, (rows, columns).

    Raises:
        EvaluationError: there are none, fewer than two axes, or one is not a number.
    """
    if weight.ndim < 2 or weight.size == 0:
        raise EvaluationError(f"weights of shape {weight.shape} are no table of outputs and inputs")
    if not np.isfinite(weight).all():
        raise EvaluationError("a weight is infinite or not a number")
    return weight.astype(np.float32).reshape(len(weight), -1)


def _describe_section(section: Section) -> tuple[int, int]:
    return _USES.index(section.use), section.bits


class _Reader:
    """Takes one thing after the other."""

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
    told = [reader.numbers("BQ") for _ in range(reader.number("B"))]
    parts = reader.number("H")
    return Record(
        kind=kind,
        shape=shape,
        text=text,
        settings=settings,
        sections=tuple(
            Section(use=_USES[use], bits=bits, data=reader.bytes(-(-bits // 8)))
            for use, bits in told
        ),
        parts=tuple(_read_record(reader) for _ in range(parts)),
    )
