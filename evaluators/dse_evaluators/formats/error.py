"""Choice, for each block, of the scaled number grid with the least squared rounding error."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dse_evaluators.formats.arrays import Single, chunks
from dse_evaluators.formats.lattice import Lattice, Plain
from dse_evaluators.formats.minifloat import Minifloat
from dse_evaluators.formats.recycled import Recycled


def least_error(
    blocks: Single,  # (b, g)
    lattices: Sequence[Lattice],
) -> NDArray[np.intp]:
    """Return for each block the lattice (scaled grid) with least squared error, (b,) indices.

    Of lattices with equal errors, the first is chosen.
    """
    errors = np.zeros((len(lattices), len(blocks)), dtype=np.float32)
    for rows, columns in chunks(blocks.shape):
        # Transposed in memory, so that operations run along the long axis of blocks and not along
        # a short block: two or three times as fast, and sums have the same order everywhere.
        part = np.ascontiguousarray(blocks[rows, columns].T).T
        with np.errstate(over="ignore"):  # an infinite error is the largest
            scaled, into = part, None
            for place, lattice in enumerate(lattices):
                if lattice.into is not None and lattice.into is not into:
                    into = lattice.into
                    scaled = part * into[rows]
                errors[place, rows] += _squares(scaled, lattice, rows)
    errors *= _units(lattices)
    return errors.argmin(axis=0)


def _squares(scaled: Single, lattice: Lattice, rows: slice) -> Single:
    """Return the squared rounding error of each block, in units of its squared scale."""
    grid = lattice.grid if isinstance(lattice, Plain) else None
    extra = grid.extra if isinstance(grid, Recycled) else None
    grid = grid.grid if isinstance(grid, Recycled) else grid
    error = scaled.copy(order="K")
    if isinstance(grid, Minifloat):
        grid.near(error, None)
    elif grid is not None:
        grid.snap(error, None)
    else:
        lattice.snap(error, rows, None)
    error -= scaled
    error *= error
    if extra is not None:
        # The extra number replaces the nearest number of the inner grid where it is nearer.
        other = scaled - np.float32(extra)
        other *= other
        bits = error.view(np.int32)
        np.minimum(bits, other.view(np.int32), out=bits)
    return np.add.reduce(error.T, axis=0)


def _units(
    lattices: Sequence[Lattice],
) -> Single:  # (l, b)
    """Return the squared scales of each lattice, relative to the first, within float32's range."""
    scales = [lattice.back[:, 0] for lattice in lattices if lattice.back is not None]
    first = np.maximum(scales[0], np.finfo(np.float32).smallest_subnormal)
    return np.stack([np.square(scale / first) for scale in scales])
