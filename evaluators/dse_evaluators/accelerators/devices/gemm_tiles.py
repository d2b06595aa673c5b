"""Cutting of a product into tiles, and the cost of their last, half-empty wave."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from dse.core.values import Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class GemmTile:
    """The part of a result that one compute unit makes at a time."""

    rows: int
    cols: int


# What NVIDIA's libraries choose among: CUTLASS 2.11, the profiler's default tensor-core tiles.
TILES: Mapping[str, GemmTile] = {
    f"{rows}x{cols}": GemmTile(rows=rows, cols=cols)
    for rows, cols in (
        *((256, 128), (128, 256), (256, 64), (64, 256)),
        *((128, 128), (128, 64), (64, 128), (64, 64)),
    )
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Waves:
    """A product m x k by k x n in tiles; every field goes with m, n and k."""

    tiles: Floats
    waves: Floats
    """Whole ones: the last may be nearly empty."""
    full: Floats
    """The share of the multiplications in all these waves that the product asked for."""
    fetched: Floats
    """Elements that the units fetch: each tile its own rows and columns."""


def waves(m: Floats, n: Floats, k: Floats, tile: GemmTile, units: int) -> Waves:
    """The waves of a product whose tiles are made by so many compute units, one each at a time.

    Source:
        NVIDIA: Matrix Multiplication Background User's Guide, tile and wave quantization.
    """
    tiles = np.ceil(m / tile.rows) * np.ceil(n / tile.cols)
    rounds = np.ceil(tiles / units)
    return Waves(
        tiles=tiles,
        waves=rounds,
        full=m * n / (rounds * units * tile.rows * tile.cols),
        fetched=tiles * k * (tile.rows + tile.cols),
    )
