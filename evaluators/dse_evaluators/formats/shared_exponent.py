"""Block scaling by a shared power of two: MX, block floating point, NxFP with finer scales."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from typing import Literal

import numpy as np

from dse_evaluators.formats.arrays import Bits, Single, Words, peaks
from dse_evaluators.formats.error import least_error
from dse_evaluators.formats.grid import Grid
from dse_evaluators.formats.lattice import Either, Lattice, Plain
from dse_evaluators.formats.layout import Span
from dse_evaluators.formats.scaling import Field, Sides

Rule = Literal["floor", "ceil", "even", "rceil", "round"]

RULES: tuple[Rule, ...] = ("floor", "ceil", "even", "rceil", "round")

_BIAS = 127

_ROOT = 0x3504F4  # smallest mantissa of a float32 above the square root of two


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedExponent:
    """Power-of-two scale per block, from the largest exponent in the block.

    The scale is 2^e, where e is the block's largest exponent minus the grid's. ``rule`` is how the
    largest magnitude is rounded to a power of two: ``floor`` down, ``ceil`` up, ``even`` down after
    rounding the magnitude to ``mantissa`` bits, ``round`` to the nearest logarithm; ``rceil`` takes
    the smallest scale with which the magnitude still fits the grid. Exponents are read from the
    float's bits, since a computed logarithm would round a value just below a power of two up to
    that power.

    Source:
        OCP Microscaling Formats 1.0, sections 5.4.1 and 6.3 (``floor``); Mishra et al., Recipes
        for Pre-training LLMs with MXFP8, 2025, section 3 (``rceil``); Darvish Rouhani et al.,
        With Shared Microexponents, A Little Shifting Goes a Long Way, 2023.
    """

    span: Span
    rule: Rule = "floor"
    offset: int = 0  # exponent of the grid's largest number
    mantissa: int = 0  # bits that ``even`` rounds to

    def fields(self, blocks: int, grid: Grid) -> tuple[Field, ...]:  # noqa: ARG002
        return (Field(name="exponent", part="scale", bits=8, count=blocks),)

    def fit(self, blocks: Single, grid: Grid) -> tuple[Sides, Lattice]:
        sides = {"exponent": (self.exponents(blocks, grid) + _BIAS).astype(np.uint32)}
        return sides, self.read(sides, grid)

    def read(self, sides: Sides, grid: Grid) -> Lattice:
        exponent = sides["exponent"].astype(np.int32)[:, None] - _BIAS
        return Plain(grid=grid, into=power(-exponent), back=power(exponent))

    def exponents(
        self,
        blocks: Single,  # (b, g)
        grid: Grid,
    ) -> Bits:
        """Return the scale exponent of each block, (b,), clipped to the range of eight bits."""
        largest = peaks(blocks)
        if self.rule == "rceil":
            found = _exponent(largest / np.float32(grid.top), "ceil", 0)
        else:
            found = _exponent(largest, self.rule, self.mantissa) - np.int32(self.offset)
        return np.clip(found, -_BIAS, _BIAS)


def power(exponent: Bits) -> Single:
    """Return two to the power of each exponent, (b,)."""
    return np.ldexp(np.float32(1), exponent)


def _exponent(magnitudes: Single, rule: Rule, mantissa: int) -> Bits:
    """Return the base-2 exponents of magnitudes rounded by ``rule``; -127 below 2^-126."""
    bits = magnitudes.view(np.int32)
    match rule:
        case "ceil":
            bits = bits + np.int32(0x7FFFFF)
        case "even":
            bits = bits + np.int32(1 << (22 - mantissa))
        case "round":
            bits = bits + np.int32(0x800000 - _ROOT)
        case "floor" | "rceil":
            pass
    return (bits >> np.int32(23)) - np.int32(_BIAS)


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
