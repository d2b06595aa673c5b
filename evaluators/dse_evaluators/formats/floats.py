"""Minifloats by name: the special values of a split of bits where its text gives none."""

from __future__ import annotations

from dse.errors import SpecError
from dse_evaluators.formats.minifloat import Minifloat, Overflow, Specials
from dse_evaluators.formats.request import FormatSpec

FLOAT = ("bias", "specials", "overflow")
_SPECIALS: tuple[Specials, ...] = ("ieee", "nan", "none", "nuz")
_OVERFLOWS: tuple[Overflow, ...] = ("sat", "ieee")


def float_of(request: FormatSpec) -> Minifloat:
    """The minifloat that a text of the family ``fp`` names.

    Raises:
        SpecError: there is none of that split, or it has numbers that a float32 has not.
    """
    return minifloat(request, exponents(request, (1, 8), "fp:e4m3"))


def exponents(request: FormatSpec, ends: tuple[int, int], example: str) -> tuple[int, int]:
    """The bits of exponent and mantissa that stand first in a text.

    Raises:
        SpecError: they do not, or are out of range.
    """
    high, low = request.parts(0, r"e(\d+)m(\d+)", example)
    exponent = request.whole("the exponent", high, ends, letter="e")
    # Rounding by adding needs two of a float32's 23 bits, but for its own exponents.
    most = 23 if exponent == 8 else 20
    mantissa = request.whole("the mantissa", low, (0, most), letter=f"e{exponent}m")
    if exponent + mantissa < 2:
        raise SpecError(
            f"the format {request.text!r} has no number but zero and one", hint="as in 'fp:e2m1'"
        )
    return exponent, mantissa


def minifloat(request: FormatSpec, split: tuple[int, int]) -> Minifloat:
    """The minifloat of so many bits of exponent and mantissa, with the text's options.

    Raises:
        SpecError: an option cannot be, or the numbers are beyond a float32.
    """
    exponent, mantissa = split
    specials = request.word("specials", _SPECIALS, _specials(exponent, mantissa))
    usual = 127 if exponent == 8 else 2 ** (exponent - 1) - (specials != "nuz")
    ends = (127, 127) if exponent == 8 else (2**exponent - 102 - mantissa, 127 - mantissa)
    overflow = request.word("overflow", _OVERFLOWS, "sat")
    _check(request, exponent, specials, overflow)
    return Minifloat(
        exponent=exponent,
        mantissa=mantissa,
        bias=request.number("bias", ends, usual),
        specials=specials,
        overflow=overflow,
    )


def _specials(exponent: int, mantissa: int) -> Specials:
    """OCP's choice where there is one: e4m3 has NaN alone, six and four bits have nothing."""
    if (exponent, mantissa) == (4, 3):
        return "nan"
    return "ieee" if exponent + mantissa >= 7 and exponent > 1 else "none"


def _check(request: FormatSpec, exponent: int, specials: Specials, overflow: Overflow) -> None:
    """Nothing, if the options agree.

    Raises:
        SpecError: they do not.
    """
    if exponent == 8 and specials != "ieee":
        raise SpecError(
            f"the format {request.text!r} has a float32's exponents and so its specials",
            hint="leave specials out",
        )
    if exponent == 1 and specials == "ieee":
        raise SpecError(
            f"the format {request.text!r} has no exponent to spare for infinities",
            hint="specials=none or specials=nan",
        )
    if overflow == "ieee" and specials == "none":
        raise SpecError(
            f"the format {request.text!r} has nothing to overflow to", hint="overflow=sat"
        )
