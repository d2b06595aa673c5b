"""Fit of a tensor's grid: what is measured, what of it is stored, and in how many bits."""

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
"""What is stored beside the codes: fields of words, each (count,)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One kind of word beside the codes: what it counts as, its bits, and how many there are."""

    name: str
    part: Part
    bits: int
    count: int


class Scaling(Protocol):
    """Method that lays a grid over a tensor.

    Law: the lattice that is read back from the stored fields takes codes to the same numbers as
    the one that was fitted.
    """

    @property
    def span(self) -> Span:
        """Extent of the numbers that share a scale."""

    def fields(self, blocks: int, grid: Grid) -> tuple[Field, ...]:
        """Return the fields stored for a tensor of this many blocks, in order."""

    def fitted(self, blocks: Single, grid: Grid) -> tuple[Sides, Lattice]:
        """Return the fields to store for these blocks, (b, g), and the lattice that results."""

    def read(self, sides: Sides, grid: Grid) -> Lattice:
        """The numbers of the blocks whose fields these are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unscaled:
    """Nothing is measured and nothing stored: the numbers are the grid's."""

    span: Span = "tensor"

    def fields(self, blocks: int, grid: Grid) -> tuple[Field, ...]:  # noqa: ARG002
        return ()

    def fitted(self, blocks: Single, grid: Grid) -> tuple[Sides, Lattice]:
        if not grid.has_nan:
            for rows, columns in chunks(blocks.shape):
                if np.isnan(blocks[rows, columns]).any():
                    check_finite(blocks)
        return {}, Plain(grid=grid)

    def read(self, sides: Sides, grid: Grid) -> Lattice:  # noqa: ARG002
        return Plain(grid=grid)
