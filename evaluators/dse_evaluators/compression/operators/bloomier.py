"""Clusters of weights in a Bloomier filter: no stored positions, but false positives."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dse.core.values import Ints
from dse.errors import EvaluationError
from dse_evaluators.compression.operators import dense
from dse_evaluators.compression.operators.bits import Loose
from dse_evaluators.compression.operators.mixing import Keys, mix_keys
from dse_evaluators.compression.operators.record import Record, Section, table_of
from dse_evaluators.formats.arrays import Single, Words
from dse_evaluators.formats.names import format_of

KIND = "bloomier"
_HASHES = 3
_TRIES = 50
_GROWTH = 1.02
_MOST_BITS = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Bloomier:
    """Bloomier-filter encoder: ``cells`` x ``cell_bits`` bits per kept weight, no positions.

    The value at a weight's position is the XOR of three hashed cells and of a hash of the position.
    A value below two to the ``value_bits`` is a cluster index; any other means that the weight is
    zero. Kept weights are restored as their cluster's centre; of the zeros, a fraction of two to
    the (value_bits - cell_bits) is restored as some cluster's centre.

    Source:
        Reagen et al., Weightless: Lossy Weight Encoding For Deep Neural Network Compression,
        2018, section 3; Chazelle et al., The Bloomier Filter, 2004; with three hashes at least
        1.222 cells per key are needed: Majewski et al., A Family of Perfect Hashing Methods, 1996.
    """

    value_bits: int
    cell_bits: int
    cells: float = 1.25  # per kept weight

    def __call__(self, weight: Single) -> Record:
        """Encode the non-zero weights as a Bloomier filter of cluster indices.

        Raises:
            EvaluationError: a cell is not wider than a value, or there are too few cells.
        """
        if not 1 <= self.value_bits < self.cell_bits <= _MOST_BITS:
            raise EvaluationError(
                f"cells of {self.cell_bits} bits cannot distinguish values of {self.value_bits} "
                f"bits from zero: they need more bits, and at most {_MOST_BITS}"
            )
        flat = table_of(weight).ravel()
        places = np.flatnonzero(flat)
        settings = (self.value_bits, self.cell_bits, 0, 0)
        sections: tuple[Section, ...] = ()
        if len(places):
            settings, sections = self._fill_cells(flat[places], places)
        return Record(
            kind=KIND,
            shape=weight.shape,
            text=_clusters(self.value_bits),
            settings=settings,
            sections=sections,
        )

    def _fill_cells(
        self, values: Single, places: Ints
    ) -> tuple[tuple[int, int, int, int], tuple[Section, ...]]:
        """Fill the filter's cells so that kept positions give their cluster indices.

        The result is the record's settings and data.
        """
        form = format_of(_clusters(self.value_bits))
        encoded = form.encode(values)
        third, seed, order = self._peel_keys(places)
        keys = places.astype(np.uint64)
        cells = np.zeros(_HASHES * third, dtype=np.uint32)
        spots = _spots(keys, third, seed)
        wanted = encoded.codes ^ _masks(keys, seed, self.cell_bits)
        for picked, own in reversed(order):
            others = np.bitwise_xor.reduce(cells[spots[picked]], axis=1)
            cells[own] = wanted[picked] ^ others  # its own cell is still zero
        _, sides = dense.split(form, encoded)
        return (self.value_bits, self.cell_bits, third, seed), (
            Section.of_words("payload", cells, self.cell_bits),
            Section.of("metadata", sides),
        )

    def _peel_keys(self, places: Ints) -> tuple[int, int, list[tuple[Ints, Ints]]]:
        """Find a hash seed for which all keys can be peeled; return cells, seed and rounds."""
        if self.cells < 1:
            raise EvaluationError(f"{self.cells} cells per weight are too few", hint="1.25")
        keys = places.astype(np.uint64)
        size = self.cells * len(places)
        for seed in range(_TRIES):
            third = math.ceil(size / _HASHES)
            order = _order(_spots(keys, third, seed))
            if sum(len(picked) for picked, _ in order) == len(keys):
                return third, seed, order
            size = size * _GROWTH + 1  # this seed did not work: add a few cells
        raise EvaluationError(
            f"{self.cells} cells per weight are too few for {len(keys)} weights", hint="1.25"
        )


def read_record(record: Record, _: tuple[Single, ...]) -> Single:
    """Decode the weights, including the zeros that the filter restores wrongly."""
    value_bits, cell_bits, third, seed = record.settings
    flat = np.zeros(math.prod(record.shape), dtype=np.float32)
    if third:
        cells = record.sections[0].words(cell_bits)
        keys = np.arange(flat.size, dtype=np.uint64)
        found = np.bitwise_xor.reduce(cells[_spots(keys, third, seed)], axis=1)
        words = found ^ _masks(keys, seed, cell_bits)
        places = np.flatnonzero(words < 2**value_bits)
        flat[places] = _values(record, words[places], record.sections[1].loose)
    return flat.reshape(record.shape)


def _clusters(value_bits: int) -> str:
    return f"kmeans:{value_bits}"


def _values(record: Record, words: Words, sides: Loose) -> Single:
    """Return the cluster centre of each index."""
    row = Record(kind=dense.KIND, shape=words.shape, text=record.text)
    width = record.settings[0]
    codes = Section.of_words("payload", words, width).loose
    return dense.decode_array(row, codes, sides) if len(words) else np.zeros(0, dtype=np.float32)


def _spots(keys: Keys, third: int, seed: int) -> Ints:
    """Return three cell indices for each key, one in each third of the cells, (n, 3)."""
    columns = [
        mix_keys(keys, _HASHES * seed + each + 1) % np.uint64(third) + np.uint64(each * third)
        for each in range(_HASHES)
    ]
    return np.stack(columns, axis=1).astype(np.int64)


def _masks(keys: Keys, seed: int, cell_bits: int) -> Words:
    """Return a random mask for each key, so that positions not stored decode to random values."""
    return (mix_keys(keys, 1_000_003 + seed) >> np.uint64(64 - cell_bits)).astype(np.uint32)


def _order(
    spots: Ints,  # (n, 3)
) -> list[tuple[Ints, Ints]]:
    """Return an order in which keys can be peeled: rounds of keys with cells of their own.

    In each round, every key has a cell that no other remaining key uses.
    """
    size = int(spots.max()) + 1
    degree = np.bincount(spots.ravel(), minlength=size)
    ids = np.arange(len(spots))
    who = np.zeros(size, dtype=np.int64)  # XOR of the keys in a cell; the key if there is one
    np.bitwise_xor.at(who, spots, ids[:, None])
    rounds: list[tuple[Ints, Ints]] = []
    while True:
        single = np.flatnonzero(degree == 1)
        if not len(single):
            return rounds
        picked, first = np.unique(who[single], return_index=True)
        rounds.append((picked, single[first]))
        np.subtract.at(degree, spots[picked], 1)
        np.bitwise_xor.at(who, spots[picked], picked[:, None])
