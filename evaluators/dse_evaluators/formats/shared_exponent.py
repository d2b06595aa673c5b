"""Block scaling by a shared power of two, as in the MX formats and block floating point."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from dse_evaluators.formats.arrays import Bits, Single, peaks
from dse_evaluators.formats.grid import Grid
from dse_evaluators.formats.lattice import Lattice, Plain
from dse_evaluators.formats.layout import Span
from dse_evaluators.formats.scaling import Field, Sides

Rule = Literal["floor", "ceil", "even", "rceil", "round"]
RULES: tuple[Rule, ...] = ("floor", "ceil", "even", "rceil", "round")

_BIAS = 127
_ROOT = 0x3504F4  # smallest mantissa of a float32 above the square root of two


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedExponent:
    """Scale of 2^e, e being the block's largest exponent minus the grid's largest exponent.

    ``rule`` rounds the largest magnitude to a power of two: ``floor`` takes the one at or below it,
    ``ceil`` the one at or above it, ``even`` the one below after rounding the magnitude to
    ``mantissa`` bits, ``round`` the nearest by logarithm; ``rceil`` takes the smallest scale with
    which the magnitude still fits the grid. Exponents are read from the float's bits, since a
    computed logarithm would round a value just below a power of two up to that power.

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
    """Return two to the power of each exponent."""
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
