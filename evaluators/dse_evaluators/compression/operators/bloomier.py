"""Clustered weights in a Bloomier filter, which answers for every place and is seldom wrong."""

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
    """Stores ``cells`` x kept weights x ``cell_bits`` bits, and no places at all.

    A place's word is the XOR of three cells and a mask of its own; below two to the
    ``value_bits`` it names a cluster, else the weight is zero. Kept weights come back as their
    cluster; of the zeros, a share of two to the (value_bits - cell_bits) come back as some cluster.

    Source:
        Reagen et al., Weightless: Lossy Weight Encoding For Deep Neural Network Compression,
        2018, section 3; Chazelle et al., The Bloomier Filter, 2004; three cells need 1.222 a
        key: Majewski et al., A Family of Perfect Hashing Methods, 1996.
    """

    value_bits: int
    cell_bits: int
    cells: float = 1.25  # for each kept weight

    def __call__(self, weight: Single) -> Record:
        """The record of the weights that are not zero.

        Raises:
            EvaluationError: a cell is not wider than a value, or there are too few cells.
        """
        if not 1 <= self.value_bits < self.cell_bits <= _MOST_BITS:
            raise EvaluationError(
                f"cells of {self.cell_bits} bits cannot tell values of {self.value_bits} from "
                f"zero: they need more bits, and at most {_MOST_BITS}"
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
        """Build the cells that map each place to its cluster."""
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
        """Return cells per third, the seed, and rounds of keys that each have a cell alone."""
        if self.cells < 1:
            raise EvaluationError(f"{self.cells} cells cannot hold a weight", hint="1.25")
        keys = places.astype(np.uint64)
        size = self.cells * len(places)
        for seed in range(_TRIES):
            third = math.ceil(size / _HASHES)
            order = _order(_spots(keys, third, seed))
            if sum(len(picked) for picked, _ in order) == len(keys):
                return third, seed, order
            size = size * _GROWTH + 1  # chance was against it: a few more cells
        raise EvaluationError(
            f"{self.cells} cells a weight are too few for {len(keys)} weights", hint="1.25"
        )


def read_record(record: Record, _: tuple[Single, ...]) -> Single:
    """Return the weights, including the false positives of the filter."""
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


def false_positives(weight: Single, given: Single) -> float:
    """The share of zero weights that came back as something else."""
    zeros = weight == 0
    return float((given[zeros] != 0).mean()) if zeros.any() else 0.0


def _clusters(value_bits: int) -> str:
    return f"kmeans:{value_bits}"


def _values(record: Record, words: Words, sides: Loose) -> Single:
    """The clusters' centres."""
    row = Record(kind=dense.KIND, shape=words.shape, text=record.text)
    width = record.settings[0]
    codes = Section.of_words("payload", words, width).loose
    return dense.decode_array(row, codes, sides) if len(words) else np.zeros(0, dtype=np.float32)


def _spots(keys: Keys, third: int, seed: int) -> Ints:
    """Three cells for each key, one in each third, (n, 3)."""
    columns = [
        mix_keys(keys, _HASHES * seed + each + 1) % np.uint64(third) + np.uint64(each * third)
        for each in range(_HASHES)
    ]
    return np.stack(columns, axis=1).astype(np.int64)


def _masks(keys: Keys, seed: int, cell_bits: int) -> Words:
    """A word for each key, so that words of places that were never stored look drawn by chance."""
    return (mix_keys(keys, 1_000_003 + seed) >> np.uint64(64 - cell_bits)).astype(np.uint32)


def _order(
    spots: Ints,  # (n, 3)
) -> list[tuple[Ints, Ints]]:
    """Rounds of keys and their own cells: no key that is left, or of the round, uses those."""
    size = int(spots.max()) + 1
    degree = np.bincount(spots.ravel(), minlength=size)
    ids = np.arange(len(spots))
    who = np.zeros(size, dtype=np.int64)  # the XOR of the keys in a cell: of one key, the key
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
