"""Protocol of scalings: methods that compute the scales of blocks, and what they store."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np

from dse_evaluators.formats.arrays import Single, Words, check_finite, chunks
from dse_evaluators.formats.grid import Grid
from dse_evaluators.formats.lattice import Lattice, Plain
from dse_evaluators.formats.layout import Span

Part = Literal["scale", "zero_point", "codebook"]
Sides = Mapping[str, Words]
"""Fields stored besides the codes (scales, zero points, codebooks), each (count,) words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """Array that is stored with the codes of a tensor, such as scales: purpose, bits, length."""

    name: str
    part: Part
    bits: int
    count: int


class Scaling(Protocol):
    """Method that computes the scales, zero points or codebook of a tensor's blocks.

    Law: the lattice (scaled grid) that :meth:`read` returns from the stored arrays decodes codes to
    the same numbers as the lattice from :meth:`fit`.
    """

    @property
    def span(self) -> Span:
        """Number of consecutive values that share a scale, or ``channel`` or ``tensor``."""

    def fields(self, blocks: int, grid: Grid) -> tuple[Field, ...]:
        """Return the arrays to store with the codes of a tensor of ``blocks`` blocks, in order."""

    def fit(self, blocks: Single, grid: Grid) -> tuple[Sides, Lattice]:
        """Compute the scales (or other stored arrays) of blocks, (b, g), and their scaled grid."""

    def read(self, sides: Sides, grid: Grid) -> Lattice:
        """Return the scaled grid of a tensor's blocks, given their stored scales."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unscaled:
    """Scaling without scales: values are rounded to the numbers of the grid itself."""

    span: Span = "tensor"

    def fields(self, blocks: int, grid: Grid) -> tuple[Field, ...]:  # noqa: ARG002
        return ()

    def fit(self, blocks: Single, grid: Grid) -> tuple[Sides, Lattice]:
        if not grid.has_nan:
            for rows, columns in chunks(blocks.shape):
                if np.isnan(blocks[rows, columns]).any():
                    check_finite(blocks)
        return {}, Plain(grid=grid)

    def read(self, sides: Sides, grid: Grid) -> Lattice:  # noqa: ARG002
        return Plain(grid=grid)
