"""Code recycling: a grid in which the code of negative zero represents one more number."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dse_evaluators.formats.arrays import Single, Words
from dse_evaluators.formats.grid import Grid


@dataclass(frozen=True, slots=True, kw_only=True)
class Recycled:
    """Grid with one additional number, which uses the otherwise redundant code of negative zero.

    A value midway between ``extra`` and a neighbour rounds to the neighbour.

    Source:
        Lo, Wei and Brooks, Nanoscaling Floating-Point (NxFP), 2024, section 4.3.
    """

    grid: Grid
    extra: float
    between: tuple[float, float]  # open interval that rounds to the extra number
    has_nan: bool = False

    @property
    def bits(self) -> int:
        return self.grid.bits

    @property
    def top(self) -> float:
        return self.grid.top

    def snap(self, values: Single, chance: Single | None) -> None:
        low, high = self.between
        bits = values.view(np.int32)
        near = values > np.float32(low)
        near &= values < np.float32(high)
        self.grid.snap(values, chance)
        values += np.float32(0)
        mask = -near.view(np.int8).astype(np.int32)
        change = bits ^ np.float32(self.extra).view(np.int32)
        change &= mask
        bits ^= change

    def codes(self, snapped: Single) -> Words:
        is_extra = snapped == np.float32(self.extra)
        return np.where(is_extra, self._code, self.grid.codes(np.where(is_extra, 0, snapped)))

    def values(self, codes: Words) -> Single:
        is_extra = codes == self._code
        return np.where(is_extra, np.float32(self.extra), self.grid.values(codes))

    @property
    def _code(self) -> np.uint32:
        return np.uint32(1 << (self.bits - 1))


def half_smallest(grid: Grid) -> Recycled:
    """Return the grid with half of its smallest positive number added."""
    smallest = float(grid.values(np.ones(1, dtype=np.uint32))[0])
    return Recycled(grid=grid, extra=smallest / 2, between=(smallest / 4, smallest * 3 / 4))


def middle_of_the_largest(grid: Grid) -> Recycled:
    """Return the grid with the midpoint of its two largest numbers added."""
    code = grid.codes(np.array([grid.top], dtype=np.float32))
    below = float(grid.values(code - np.uint32(1))[0])
    step = (grid.top - below) / 4
    return Recycled(grid=grid, extra=below + 2 * step, between=(below + step, below + 3 * step))
