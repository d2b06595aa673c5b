"""Lattices: a value grid combined with the scales or zero points of each block of a tensor."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dse_evaluators.formats.arrays import Single, Words
from dse_evaluators.formats.grid import Grid
from dse_evaluators.formats.rounding import climb


class Lattice(Protocol):
    """Representable numbers of a tensor's blocks: a grid, and scale factors per block."""

    @property
    def into(self) -> Single | None:
        """Factor per block, (b, 1), to multiply values by before rounding; ``None`` means one."""

    @property
    def back(self) -> Single | None:
        """Factor per block, (b, 1), by which rounded numbers are multiplied; ``None``: one."""

    def snap(self, values: Single, rows: slice, chance: Single | None) -> None:
        """Round values of some blocks in place to the grid.

        ``rows`` selects the blocks; the values are already multiplied by ``into``.
        """

    def codes(self, snapped: Single, rows: slice) -> Words:
        """Return the codes of values that :meth:`snap` has rounded, for the blocks ``rows``."""

    def values(self, codes: Words, rows: slice) -> Single:
        """Return the numbers of codes of the blocks ``rows``, before multiplication by ``back``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plain:
    """Lattice (scaled grid) with the same grid for every block."""

    grid: Grid
    into: Single | None = None
    back: Single | None = None

    def snap(self, values: Single, rows: slice, chance: Single | None) -> None:  # noqa: ARG002
        self.grid.snap(values, chance)

    def codes(self, snapped: Single, rows: slice) -> Words:  # noqa: ARG002
        return self.grid.codes(snapped)

    def values(self, codes: Words, rows: slice) -> Single:  # noqa: ARG002
        return self.grid.values(codes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shifted:
    """Lattice (scaled grid) of unsigned integer codes with a zero point per block."""

    bits: int
    zeros: Single  # (b, 1), the code that represents zero
    into: Single
    back: Single

    def snap(self, values: Single, rows: slice, chance: Single | None) -> None:
        if chance is None:
            np.rint(values, out=values)
        else:
            climb(values, chance)
        values += self.zeros[rows]
        np.clip(values, np.float32(0), np.float32(2**self.bits - 1), out=values)
        values -= self.zeros[rows]

    def codes(self, snapped: Single, rows: slice) -> Words:
        return (snapped + self.zeros[rows]).astype(np.uint32)

    def values(self, codes: Words, rows: slice) -> Single:
        return codes.astype(np.float32) - self.zeros[rows]


@dataclass(frozen=True, slots=True, kw_only=True)
class Either:
    """Lattice (scaled grid) that uses one of two grids for each block."""

    grids: tuple[Grid, Grid]
    second: NDArray[np.bool_]  # (b, 1), where a block is on the second grid
    into: Single | None
    back: Single | None

    def snap(self, values: Single, rows: slice, chance: Single | None) -> None:
        chosen = self.second[rows, 0]
        for grid, of in zip(self.grids, (~chosen, chosen), strict=True):
            places = np.flatnonzero(of)
            part = values[places]
            grid.snap(part, None if chance is None else chance[places])
            values[places] = part

    def codes(self, snapped: Single, rows: slice) -> Words:
        chosen = self.second[rows]
        first = self.grids[0].codes(np.where(chosen, np.float32(0), snapped))
        return np.where(chosen, self.grids[1].codes(np.where(chosen, snapped, 0)), first)

    def values(self, codes: Words, rows: slice) -> Single:
        chosen = self.second[rows]
        return np.where(chosen, self.grids[1].values(codes), self.grids[0].values(codes))


@dataclass(frozen=True, slots=True, kw_only=True)
class Thirds:
    """Ternary lattice (scaled grid) of -1, 0 and 1, with a threshold per block.

    Magnitudes up to the threshold round to zero.
    """

    grid: Grid
    thresholds: Single  # (b, 1)
    back: Single
    into: None = None

    def snap(self, values: Single, rows: slice, chance: Single | None) -> None:  # noqa: ARG002
        beyond = self.thresholds[rows]
        above = values > beyond
        below = values < -beyond
        np.subtract(above, below, out=values, dtype=np.float32)

    def codes(self, snapped: Single, rows: slice) -> Words:  # noqa: ARG002
        return self.grid.codes(snapped)

    def values(self, codes: Words, rows: slice) -> Single:  # noqa: ARG002
        return self.grid.values(codes)
