"""Bits of the codes of a number format: sign, exponent, mantissa, and the choice of some bits."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from dse.errors import SpecError, nearest
from dse_evaluators.formats.affine import AffineScaling
from dse_evaluators.formats.integers import Integers
from dse_evaluators.formats.minifloat import Minifloat
from dse_evaluators.formats.names import format_of

FIELDS = ("all", "sign", "exponent", "mantissa")
"""Names of groups of bits; a single bit is named by its position, from 0, the lowest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeBits:
    """Masks of the bits of a format's codes; a field that the format lacks is zero.

    Integers in two's complement have a sign bit, and no exponent or mantissa.
    """

    name: str
    bits: int
    sign: int
    exponent: int
    mantissa: int

    @property
    def all(self) -> int:
        """Mask of all bits of a code."""
        return (1 << self.bits) - 1

    def chosen(self, text: str) -> int:
        """Return the mask of the bits that a text names: a field such as ``sign``, or a position.

        Raises:
            SpecError: there is no such field or position in this format.
        """
        if text.isdecimal():
            if int(text) >= self.bits:
                hint = f"positions are 0, the lowest, to {self.bits - 1}"
                raise SpecError(f"{self.name} has no bit {text}", hint=hint)
            return 1 << int(text)
        if text not in FIELDS:
            hint = f"{nearest(text, FIELDS)}; or a position from 0, the lowest"
            raise SpecError(f"there are no bits {text!r}", hint=hint)
        mask = int(getattr(self, text))
        if not mask:
            has = [name for name in FIELDS if getattr(self, name)]
            raise SpecError(f"{self.name} has no {text}", hint=f"it has {', '.join(has)}")
        return mask


@lru_cache(maxsize=1024)
def code_bits(text: str) -> CodeBits:
    """Return the bits of the codes of a number format.

    Args:
        text: name of the format, such as ``fp8_e4m3`` or ``int8:channel``.

    Raises:
        SpecError: there is no such format.
    """
    form = format_of(text)
    bits, grid = form.grid.bits, form.grid
    sign = 1 << (bits - 1)
    if isinstance(grid, Minifloat):
        exponent = ((1 << grid.exponent) - 1) << grid.mantissa
        mantissa = (1 << grid.mantissa) - 1
        return CodeBits(name=text, bits=bits, sign=sign, exponent=exponent, mantissa=mantissa)
    is_signed = isinstance(grid, Integers) and not isinstance(form.scaling, AffineScaling)
    return CodeBits(name=text, bits=bits, sign=sign if is_signed else 0, exponent=0, mantissa=0)
