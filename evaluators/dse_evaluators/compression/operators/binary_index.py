"""Pruning mask stored as the boolean product of two smaller masks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dse.core.values import Floats, Mask
from dse.errors import EvaluationError
from dse_evaluators.compression.operators.prune import by_layer
from dse_evaluators.compression.operators.record import Record, Section, table_of
from dse_evaluators.formats.arrays import Single

KIND = "mask-product"
_ROUNDS = 100
_HALVINGS = 16
_SHARES = np.linspace(0.1, 0.9, 9)
_TINY = 1e-12


@dataclass(frozen=True, slots=True, kw_only=True)
class BinaryIndex:
    """Low-rank binary index of a pruning mask, with ``rank`` x (rows + columns) bits per tile.

    Each tile's magnitudes are factored into two non-negative matrices, and both are thresholded so
    that their boolean product has the wanted density. Of several thresholds of the first matrix
    (each with the threshold of the second that gives the density), the pair is chosen that loses
    the least magnitude among the weights that magnitude pruning would keep.

    Source:
        Lee et al., Network Pruning for Low-Rank Binary Indexing, 2019, algorithm 1; the
        factors: Lee and Seung, Algorithms for Non-negative Matrix Factorization, 2001, eq. 4.
    """

    rank: int
    density: float
    tile: tuple[int, int] | None = None
    seed: int = 0

    def __call__(self, weight: Single) -> Record:
        """Encode the magnitude-pruning mask of a weight tensor as low-rank binary factors.

        Raises:
            EvaluationError: tiles do not divide the weights, or the density is not in 0 to 1.
        """
        table = table_of(weight)
        high, wide = self.tile or table.shape
        if min(high, wide, self.rank) < 1 or table.shape[0] % high or table.shape[1] % wide:
            raise EvaluationError(
                f"a table of {table.shape[0]} by {table.shape[1]} cannot be indexed by rank "
                f"{self.rank} in tiles of {high} by {wide}"
            )
        cut = table.reshape(table.shape[0] // high, high, -1, wide).swapaxes(1, 2)
        pairs = [self._factor_tile(part) for part in cut.reshape(-1, high, wide)]
        bits = np.concatenate([side.ravel() for pair in pairs for side in pair])
        return Record(
            kind=KIND,
            shape=table.shape,
            settings=(self.rank, high, wide),
            sections=(Section.of("metadata", bits.astype(np.uint8)),),
        )

    def _factor_tile(self, tile: Single) -> tuple[Mask, Mask]:
        """Return the two masks of one tile, (rows, rank) and (rank, columns)."""
        wanted = by_layer(tile, self.density) != 0
        magnitudes = np.abs(tile.astype(np.float64))
        tall, broad = _factors(magnitudes, self.rank, self.seed)
        best: tuple[float, Mask, Mask] | None = None
        for share in _SHARES:
            left = tall > np.quantile(tall, share)
            right = _fitting(left, broad, self.density)
            lost = float(magnitudes[wanted & ~_product(left, right)].sum())
            # Penalize a wrong density: otherwise thresholds that keep everything would win.
            off = abs(_product(left, right).mean() - self.density)
            score = lost + off * float(magnitudes.sum())
            if best is None or score < best[0]:
                best = (score, left, right)
        assert best is not None
        return best[1], best[2]


def read_record(record: Record, _: tuple[Single, ...]) -> Single:
    """Decode the pruning mask to ones and zeros, (rows, columns)."""
    rank, high, wide = record.settings
    rows, columns = record.shape
    bits = record.sections[0].loose.reshape(-1, rank * (high + wide))
    tall = bits[:, : rank * high].reshape(-1, high, rank).astype(np.float32)
    broad = bits[:, rank * high :].reshape(-1, rank, wide).astype(np.float32)
    tiles = (tall @ broad > 0).astype(np.float32)
    table = tiles.reshape(rows // high, columns // wide, high, wide).swapaxes(1, 2)
    return table.reshape(rows, columns)


def _factors(magnitudes: Floats, rank: int, seed: int) -> tuple[Floats, Floats]:
    """Factor a matrix of magnitudes into two non-negative matrices, by multiplicative updates."""
    rng = np.random.default_rng(seed)
    tall = rng.random((magnitudes.shape[0], rank)) + _TINY
    broad = rng.random((rank, magnitudes.shape[1])) + _TINY
    for _ in range(_ROUNDS):
        broad *= (tall.T @ magnitudes) / (tall.T @ tall @ broad + _TINY)
        tall *= (magnitudes @ broad.T) / (tall @ (broad @ broad.T) + _TINY)
    # Normalize the columns, so that one threshold has the same meaning in each.
    lengths = np.linalg.norm(tall, axis=0) + _TINY
    return tall / lengths, broad * lengths[:, None]


def _fitting(left: Mask, broad: Floats, density: float) -> Mask:
    """Return the second factor's mask for which the boolean product has the wanted density.

    The threshold is found by bisection.
    """
    order = np.sort(broad.ravel())
    low, high = 0, len(order)
    for _ in range(max(_HALVINGS, len(order).bit_length())):
        middle = (low + high) // 2
        if _product(left, _above(broad, order, middle)).mean() > density:
            low = middle
        else:
            high = middle
    return _above(broad, order, high)


def _above(broad: Floats, order: Floats, place: int) -> Mask:
    """Return the mask of the elements of ``broad`` above the ``place``-th smallest.

    ``order`` holds the elements in ascending order.
    """
    return broad > order[place - 1] if place else np.ones(broad.shape, dtype=np.bool_)


def _product(left: Mask, right: Mask) -> Mask:
    return left.astype(np.float32) @ right.astype(np.float32) > 0
