"""Parsing of minifloat names such as ``fp:e4m3``, with default bias and special values."""

from __future__ import annotations

from dse.errors import SpecError
from dse_evaluators.formats.minifloat import Minifloat, Overflow, Specials
from dse_evaluators.formats.request import FormatSpec

FLOAT = ("bias", "specials", "overflow")
_SPECIALS: tuple[Specials, ...] = ("ieee", "nan", "none", "nuz")
_OVERFLOWS: tuple[Overflow, ...] = ("sat", "ieee")


def float_of(request: FormatSpec) -> Minifloat:
    """Return the minifloat that a parsed format name such as ``fp:e4m3`` denotes.

    Raises:
        SpecError: the numbers of exponent and mantissa bits are invalid, or values exceed float32.
    """
    return minifloat(request, exponents(request, (1, 8), "fp:e4m3"))


def exponents(request: FormatSpec, ends: tuple[int, int], example: str) -> tuple[int, int]:
    """Return the numbers of exponent and mantissa bits of a format name's item such as ``e4m3``.

    Raises:
        SpecError: the item is missing, malformed or out of range.
    """
    high, low = request.parts(0, r"e(\d+)m(\d+)", example)
    exponent = request.whole("the exponent", high, ends, letter="e")
    # Rounding by addition needs two of float32's 23 mantissa bits, except with 8 exponent bits.
    most = 23 if exponent == 8 else 20
    mantissa = request.whole("the mantissa", low, (0, most), letter=f"e{exponent}m")
    if exponent + mantissa < 2:
        raise SpecError(
            f"the format {request.text!r} has no number but zero and one", hint="as in 'fp:e2m1'"
        )
    return exponent, mantissa


def minifloat(request: FormatSpec, split: tuple[int, int]) -> Minifloat:
    """Return the minifloat with the exponent and mantissa bits of ``split`` and a name's options.

    Raises:
        SpecError: an option is invalid, or the numbers do not fit float32.
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
    """Return the default kind of special values for these numbers of exponent and mantissa bits.

    As in the OCP formats, it is NaN alone for e4m3 and none below 8 bits or with one exponent bit;
    otherwise it is that of IEEE 754.
    """
    if (exponent, mantissa) == (4, 3):
        return "nan"
    return "ieee" if exponent + mantissa >= 7 and exponent > 1 else "none"


def _check(request: FormatSpec, exponent: int, specials: Specials, overflow: Overflow) -> None:
    """Check that the options are compatible with each other.

    Raises:
        SpecError: two options contradict each other.
    """
    if exponent == 8 and specials != "ieee":
        raise SpecError(
            f"the format {request.text!r} has 8 exponent bits and so needs IEEE special values",
            hint="leave specials out",
        )
    if exponent == 1 and specials == "ieee":
        raise SpecError(
            f"the format {request.text!r} has too few exponents to reserve one for infinities",
            hint="specials=none or specials=nan",
        )
    if overflow == "ieee" and specials == "none":
        raise SpecError(
            f"the format {request.text!r} has no infinity or NaN to overflow to",
            hint="use overflow=sat",
        )
