"""Scaling of NxFP: MX blocks with a finer scale, and one of two grids for each block."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from dse_evaluators.formats.arrays import Single, Words
from dse_evaluators.formats.error import least_error
from dse_evaluators.formats.grid import Grid
from dse_evaluators.formats.lattice import Either, Lattice, Plain
from dse_evaluators.formats.layout import Span
from dse_evaluators.formats.scaling import Field, Sides
from dse_evaluators.formats.shared_exponent import SharedExponent, power

_BIAS = 127


@dataclass(frozen=True, slots=True, kw_only=True)
class Nano:
    """Scale of 2^e times 1, 1.25, 1.5 or 1.75, and the better of two grids, for each block.

    ``nano`` enables the four mantissas of the scale (two bits per block), ``fixed`` is the second
    grid (one bit per block). Each block takes the combination, of up to eight, with the least
    squared error.

    Source:
        Lo, Wei and Brooks, Nanoscaling Floating-Point (NxFP), 2024, section 4.
    """

    span: Span = 32
    offset: int
    nano: bool = True
    fixed: Grid | None

    def fields(self, blocks: int, grid: Grid) -> tuple[Field, ...]:  # noqa: ARG002
        fields = [Field(name="exponent", part="scale", bits=8, count=blocks)]
        if self.nano:
            fields.append(Field(name="nano", part="scale", bits=2, count=blocks))
        if self.fixed is not None:
            fields.append(Field(name="micro", part="scale", bits=1, count=blocks))
        return tuple(fields)

    def fit(self, blocks: Single, grid: Grid) -> tuple[Sides, Lattice]:
        shared = SharedExponent(span=self.span, offset=self.offset)
        exponent = (shared.exponents(blocks, grid) + _BIAS).astype(np.uint32)
        grids = [grid] if self.fixed is None else [grid, self.fixed]
        ways = list(product(range(4 if self.nano else 1), range(len(grids))))
        scaled = [_scale_grid(grid, exponent, np.uint32(nano)) for nano in range(ways[-1][0] + 1)]
        tried = [replace(scaled[nano], grid=grids[micro]) for nano, micro in ways]
        best = np.array(ways, dtype=np.uint32)[least_error(blocks, tried)]
        sides = {"exponent": exponent}
        if self.nano:
            sides["nano"] = best[:, 0].copy()
        if self.fixed is not None:
            sides["micro"] = best[:, 1].copy()
        return sides, self.read(sides, grid)

    def read(self, sides: Sides, grid: Grid) -> Lattice:
        nano = sides["nano"] if self.nano else np.zeros(1, dtype=np.uint32)
        plain = _scale_grid(grid, sides["exponent"], nano)
        if self.fixed is None:
            return plain
        second = sides["micro"].astype(bool)[:, None]
        return Either(grids=(grid, self.fixed), second=second, into=plain.into, back=plain.back)


def _scale_grid(grid: Grid, exponent: Words, nano: Words | np.uint32) -> Plain:
    """Return the grid with each block's scale of 2^(exponent - 127) (1 + nano / 4)."""
    fraction = np.float32(1) + np.asarray(nano).astype(np.float32) / np.float32(4)
    scale = (power(exponent.astype(np.int32) - _BIAS) * fraction)[:, None]
    return Plain(grid=grid, into=np.divide(np.float32(1), scale, dtype=np.float32), back=scale)
