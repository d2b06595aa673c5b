"""Tiling of a GEMM, and wave quantization: the cost of a last wave that is partly empty."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from dse.core.values import Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class GemmTile:
    """Tile of a GEMM: the rows and columns of the result that a compute unit computes at a time."""

    rows: int
    cols: int


# Tiles from which NVIDIA's libraries select: default tensor-core tiles of CUTLASS 2.11's profiler.
TILES: Mapping[str, GemmTile] = {
    f"{rows}x{cols}": GemmTile(rows=rows, cols=cols)
    for rows, cols in (
        *((256, 128), (128, 256), (256, 64), (64, 256)),
        *((128, 128), (128, 64), (64, 128), (64, 64)),
    )
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Waves:
    """Tiles and waves of a GEMM of m x k by k x n; fields have the shape of m, n and k.

    A wave is the tiles that all compute units process at the same time, one each.
    """

    tiles: Floats
    waves: Floats
    """Number of waves, rounded up: the last one may be nearly empty."""
    full: Floats
    """Useful share of the multiplications that full waves would perform."""
    fetched: Floats
    """Elements that the compute units fetch: for each tile, its rows and columns of operands."""


def waves(m: Floats, n: Floats, k: Floats, tile: GemmTile, units: int) -> Waves:
    """Compute the waves of a GEMM on ``units`` compute units.

    Each unit processes one tile at a time.

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
