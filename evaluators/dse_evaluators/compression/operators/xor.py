"""Signs of sparse weights as short seeds that a fixed network of XOR gates expands."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dse.core.values import Floats, Mask
from dse.errors import EvaluationError
from dse_evaluators.compression.operators.bits import Loose, width_of
from dse_evaluators.compression.operators.masks import mask_of
from dse_evaluators.compression.operators.mixing import mixed_range
from dse_evaluators.compression.operators.record import Record, Section, table_of
from dse_evaluators.formats.arrays import Single, Words

KIND = "xor"
_MOST_SEED_BITS = 32

Table = NDArray[np.uint32]


@dataclass(frozen=True, slots=True, kw_only=True)
class Xor:
    """Encoder of ``planes`` signs per weight, exact for the weights that the mask keeps.

    Slices of ``spread`` signs are each generated from ``seed_bits`` bits by a random matrix over
    GF(2). The bits are solved so that as many kept signs as possible are right; the others are
    corrected (patched), and the positions of these patches are stored. A sign thus costs seed_bits
    / spread bits plus its share of the patches; that ratio is close to the fraction of kept
    weights. A weight is the sum over the planes of its sign times the plane's scale.

    Source:
        Kwon et al., Structured Compression by Weight Encryption for Unstructured Pruning and
        Quantization, 2020, section 3 and algorithm 1; sums of signs: Guo et al., Network
        Sketching, 2017, algorithm 1.
    """

    seed_bits: int
    spread: int
    planes: int = 1
    seed: int = 0

    def __call__(self, weight: Single, places: Record) -> Record:
        """Encode the signs and scales of the weights that an encoded mask keeps.

        Raises:
            EvaluationError: ``seed_bits``, ``spread`` or ``planes`` is out of range.
        """
        if not 1 <= self.seed_bits <= _MOST_SEED_BITS or self.spread < 1 or self.planes < 1:
            raise EvaluationError(
                f"{self.planes} planes of {self.spread} signs from {self.seed_bits} bits "
                f"cannot be encoded: seeds have 1 to {_MOST_SEED_BITS} bits"
            )
        table = table_of(weight)
        mask = mask_of(places)
        gates = _gates(self.spread, self.seed_bits, self.seed)
        scales, signs = _signs(table, mask, self.planes)
        most: list[int] = []
        sections: list[Section] = []
        for plane in signs:
            seeds, wrong = _solve_seeds(self._cut(plane), self._cut(mask), gates, self.seed_bits)
            counts = wrong.sum(axis=1)
            most.append(int(counts.max()))
            spots = np.nonzero(wrong)[1].astype(np.uint32)
            sections += (
                Section.of_words("payload", seeds, self.seed_bits),
                Section.of_words("metadata", counts.astype(np.uint32), width_of(most[-1])),
                Section.of_words("metadata", spots, width_of(self.spread - 1)),
            )
        return Record(
            kind=KIND,
            shape=weight.shape,
            settings=(self.seed_bits, self.spread, self.seed, *most),
            sections=(Section.of_words("fp32", scales.view(np.uint32), 32), *sections),
            parts=(places,),
        )

    def _cut(self, mask: Mask) -> Mask:
        """Return the mask cut into slices of signs, the last one padded, (slices, spread)."""
        return np.pad(mask.ravel(), (0, -mask.size % self.spread)).reshape(-1, self.spread)


def read_record(record: Record, parts: tuple[Single, ...]) -> Single:
    """Return the kept weights as sums of signs times scales, and zeros elsewhere."""
    seed_bits, spread, seed, *most = record.settings
    gates = _gates(spread, seed_bits, seed)
    scales = record.sections[0].words(32).view(np.float32)
    size = math.prod(record.shape)
    weights = np.zeros(size, dtype=np.float32)
    for plane, (scale, highest) in enumerate(zip(scales, most, strict=True)):
        seeds, counts, spots = record.sections[1 + 3 * plane : 4 + 3 * plane]
        signs = _spread(seeds.words(seed_bits), gates)
        if highest:
            slices = np.repeat(np.arange(len(signs)), counts.words(width_of(highest)))
            # A slice of one sign needs no bits for its place.
            wrong = spots.words(width_of(spread - 1)) if spread > 1 else np.zeros_like(slices)
            signs[slices, wrong] ^= 1
        weights += np.where(signs.ravel()[:size] == 1, scale, -scale)
    return (weights * (parts[0].ravel() != 0)).astype(np.float32).reshape(record.shape)


def _gates(spread: int, seed_bits: int, seed: int) -> Table:
    """Return, for each sign, the mask of the seed bits whose parity is the sign, (spread,)."""
    return (mixed_range(spread, seed) >> np.uint64(64 - seed_bits)).astype(np.uint32)


def _spread(seeds: Words, gates: Table) -> Loose:
    """Return the signs that the seeds expand to, (slices, spread)."""
    return np.bitwise_count(seeds[:, None] & gates) & np.uint8(1)


def _signs(table: Single, mask: Mask, planes: int) -> tuple[Single, list[Mask]]:
    """Return each plane's scale and signs: the mean magnitude and the signs of the residual."""
    left: Floats = np.where(mask, table.astype(np.float64), 0)
    scales, signs = [], []
    for _ in range(planes):
        scales.append(np.float32(np.abs(left[mask]).mean() if mask.any() else 0))
        signs.append(left >= 0)
        left = np.where(mask, left - np.where(signs[-1], scales[-1], -scales[-1]), 0)
    return np.array(scales, dtype=np.float32), signs


def _solve_seeds(
    signs: Mask,  # (slices, spread)
    cared: Mask,
    gates: Table,  # (spread,)
    seed_bits: int,
) -> tuple[Words, Mask]:
    """Return a seed for each slice, and the mask of kept signs that it expands to wrongly.

    Gaussian elimination runs on all slices at once, sign by sign; an equation's pivot is its lowest
    bit.
    """
    slices = len(signs)
    rows = np.zeros((slices, seed_bits), dtype=np.uint32)
    sums = np.zeros((slices, seed_bits), dtype=np.bool_)
    for spot in np.flatnonzero(cared.any(axis=0)):
        row = np.full(slices, gates[spot], dtype=np.uint32)
        row[~cared[:, spot]] = 0
        value = signs[:, spot].copy()
        for pivot in range(seed_bits):
            has = (row >> np.uint32(pivot)) & np.uint32(1) == 1
            new = has & (rows[:, pivot] == 0)
            rows[new, pivot], sums[new, pivot] = row[new], value[new]
            value ^= has & sums[:, pivot]
            row ^= np.where(has, rows[:, pivot], np.uint32(0))
    seeds = _substitute_back(rows, sums)
    return seeds, cared & ((_spread(seeds, gates) == 1) != signs)


def _substitute_back(rows: Table, sums: Mask) -> Words:
    """Solve the triangular GF(2) systems for the seeds; free bits are zero."""
    seeds: Words = np.zeros(len(rows), dtype=np.uint32)
    for pivot in reversed(range(rows.shape[1])):
        known = np.bitwise_count(rows[:, pivot] & seeds) & np.uint8(1)
        bit = (rows[:, pivot] != 0) & (sums[:, pivot] ^ (known == 1))
        seeds |= bit.astype(np.uint32) << np.uint32(pivot)
    return seeds
