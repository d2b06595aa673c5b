"""Protocol of scalings, which fit the scales of a tensor's blocks, and the arrays they store."""

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
    """Array stored with the codes, such as the scales: purpose, bits per element and length."""

    name: str
    part: Part
    bits: int
    count: int


class Scaling(Protocol):
    """Method that computes the scales, zero points or codebook of a tensor's blocks.

    Law: :meth:`read` of the stored arrays returns a lattice that decodes codes to the same numbers
    as the one from :meth:`fit`.
    """

    @property
    def span(self) -> Span:
        """Number of consecutive values that share a scale, or ``channel`` or ``tensor``."""

    def fields(self, blocks: int, grid: Grid) -> tuple[Field, ...]:
        """Return the arrays stored with the codes of a tensor of this many blocks, in order."""

    def fit(self, blocks: Single, grid: Grid) -> tuple[Sides, Lattice]:
        """Return the scales and other arrays to store for blocks, (b, g), and their lattice."""

    def read(self, sides: Sides, grid: Grid) -> Lattice:
        """Return the lattice of a tensor's blocks from their stored scales and other arrays."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unscaled:
    """Scaling that fits and stores nothing: the values are rounded to the grid itself."""

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
