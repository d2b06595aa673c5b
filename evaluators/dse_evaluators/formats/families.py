"""Table of number-format families: the syntax of their names, and functions that build them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from dse.errors import SpecError
from dse_evaluators.formats.adaptive import Adaptive
from dse_evaluators.formats.codebook import Codebook
from dse_evaluators.formats.floats import FLOAT, exponents, float_of, minifloat
from dse_evaluators.formats.grid import Grid
from dse_evaluators.formats.integers import Integers, symmetric
from dse_evaluators.formats.linear import Linear, Nested, TwoLevel
from dse_evaluators.formats.means import Means, Signs
from dse_evaluators.formats.posit import Posit
from dse_evaluators.formats.powers import NEAREST, Powers
from dse_evaluators.formats.recycled import half_smallest, middle_of_the_largest
from dse_evaluators.formats.request import FormatSpec
from dse_evaluators.formats.scaling import Scaling, Unscaled
from dse_evaluators.formats.shared_exponent import RULES, Nano, SharedExponent
from dse_evaluators.formats.spans import SCALED, SPANS, block, linear, span
from dse_evaluators.formats.stored import STORED
from dse_evaluators.formats.tables import normal_float

Made = tuple[Grid, Scaling]

INTEGER_BITS = (2, 16)

_FULL_RANGE = "full-range"


@dataclass(frozen=True, slots=True, kw_only=True)
class FormatFamily:
    """Family of number formats with a common name, such as ``int`` or ``fp``.

    ``firsts`` is the number of positional items in the names of its formats.
    """

    example: str
    made: Callable[[FormatSpec], Made]
    firsts: int = 0
    options: tuple[str, ...] = ()
    has_chance: bool = True  # supports stochastic rounding


def _float(request: FormatSpec) -> Made:
    grid = float_of(request)
    is_scaled = any(name in request.options for name in SCALED)
    return grid, linear(request) if is_scaled else Unscaled()


def _integer(request: FormatSpec) -> Made:
    bits = int(request.text.partition(":")[0].removeprefix("int"))
    request.one_of(("asym", "full"))
    if request.one_of(("full", _FULL_RANGE, "rms")) != _FULL_RANGE:
        return symmetric(bits, full="full" in request.options), linear(request)
    return symmetric(bits, full=True), linear(request, steps=2**bits - 1)


def _build_fixed_point(request: FormatSpec) -> Made:
    word, fraction = request.parts(0, r"(\d+)\.(-?\d+)", "fixed:8.4")
    bits = request.whole("the width", word, INTEGER_BITS)
    places = request.whole("the fraction", fraction, (-32, 32), letter=f"{bits}.")
    half = 2 ** (bits - 1)
    return Integers(bits=bits, low=-half, high=half - 1, unit=2.0**-places), Unscaled()


def _mx(request: FormatSpec) -> Made:
    rule = request.word("scale", RULES, "floor")
    full = "full" in request.options
    if full and request.first != ("int8",):
        raise SpecError(
            f"the format {request.text!r} has no spare code to use", hint="full needs mx:int8"
        )
    if request.first == ("int8",):
        grid: Grid = Integers(bits=8, low=-127 - full, high=127, unit=2.0**-6)
        offset, mantissa = 0, 6
    else:
        small = minifloat(request, exponents(request, (1, 5), "mx:e2m1"))
        grid, offset, mantissa = small, small.top_exponent, small.mantissa
    return grid, SharedExponent(
        span=block(request, 32), rule=rule, offset=offset, mantissa=mantissa
    )


def _nvfp4(request: FormatSpec) -> Made:
    grid = minifloat(request, (2, 1))
    return grid, TwoLevel(span=block(request, 16), global_="single" not in request.options)


def _bfp(request: FormatSpec) -> Made:
    (magnitude,) = request.parts(0, r"m(\d+)", "bfp:m4,b16")
    (width,) = request.parts(1, r"b(\d+)", "bfp:m4,b16")
    bits = request.whole("the mantissa", magnitude, (1, 15), letter="m")
    size = request.whole("the block", width, (1, 1 << 20), letter="b")
    high = 2**bits - 1
    grid = Integers(bits=bits + 1, low=-high, high=high, unit=2.0 ** (1 - bits))
    return grid, SharedExponent(span=size)


def _posit(request: FormatSpec) -> Made:
    (word,) = request.parts(0, r"(\d+)", "posit:8,1")
    (written,) = request.parts(1, r"(\d+)", "posit:8,1")
    bits = request.whole("the width", word, (3, 16))
    most = (126 // (bits - 2)).bit_length() - 1
    scale_bits = request.whole("the exponent", written, (0, min(most, 4)), letter=f"{bits},")
    is_scaled = any(name in request.options for name in SCALED)
    grid = Posit(bits=bits, scale_bits=scale_bits)
    return grid, linear(request) if is_scaled else Unscaled()


def _adaptivfloat(request: FormatSpec) -> Made:
    (word,) = request.parts(0, r"(\d+)", "adaptivfloat:8,3")
    (written,) = request.parts(1, r"(\d+)", "adaptivfloat:8,3")
    bits = request.whole("the width", word, (3, 16))
    exponent = request.whole("the exponent", written, (1, min(6, bits - 1)), letter=f"{bits},")
    variant = request.word("variant", ("paper", "reference"), "paper")
    grid = Adaptive(
        exponent=exponent, mantissa=bits - 1 - exponent, reference=variant == "reference"
    )
    if grid.reference and exponent == 1:
        raise SpecError(
            f"the format {request.text!r} has no exponent left: the reference uses two fewer",
            hint="at least two exponent bits",
        )
    return grid, SharedExponent(span=span(request, "tensor"))


def _nxfp(request: FormatSpec) -> Made:
    (word,) = request.parts(0, r"(\d+)", "nxfp:4")
    bits = request.whole("the width", word, (4, 8))
    recycle = request.word("recycle", ("half", "middle", "off"), "half")
    nano = request.word("nano", ("on", "off"), "on") == "on"
    micro = request.word("micro", ("on", "off"), "on") == "on"
    small = minifloat(request, (2, bits - 3))
    unit = 2.0 ** (4 - bits)
    high = 2 ** (bits - 1) - 1
    whole = Integers(bits=bits, low=-high, high=high, unit=unit)
    grids: tuple[Grid, Grid] = (small, whole)
    if recycle != "off":
        more = half_smallest if recycle == "half" else middle_of_the_largest
        grids = more(small), more(whole)
    fixed = grids[1] if micro else None
    return grids[0], Nano(
        span=block(request, 32), offset=small.top_exponent, nano=nano, fixed=fixed
    )


def _nf4(request: FormatSpec) -> Made:
    size = block(request, 64)
    if request.one_of(("double", "scale")) == "double":
        return normal_float(), Nested(span=size)
    stored = request.word("scale", tuple(STORED), "fp32")
    return normal_float(), Linear(span=size, stored=stored)


def _log(request: FormatSpec) -> Made:
    (word,) = request.parts(0, r"(\d+)", "log:4")
    bits = request.whole("the width", word, (2, 7))
    rule = request.word("nearest", NEAREST, "log")
    return Powers(bits=bits, nearest=rule), SharedExponent(
        span=span(request, "tensor"), rule="round"
    )


def _ternary(request: FormatSpec) -> Made:
    return Integers(bits=2, low=-1, high=1), Means(span=span(request, "channel"), ternary=True)


def _binary(request: FormatSpec) -> Made:
    return Signs(), Means(span=span(request, "channel"), ternary=False)


def _kmeans(request: FormatSpec) -> Made:
    (word,) = request.parts(0, r"(\d+)", "kmeans:4")
    bits = request.whole("the width", word, (1, 8))
    # The real grid is fitted to each tensor; this placeholder only gives the width of a code.
    book = Codebook(bits=bits, exact="exact" in request.options)
    return Integers(bits=bits, low=0, high=2**bits - 1), book


FAMILIES: Mapping[str, FormatFamily] = {
    "fp": FormatFamily(example="fp:e4m3", made=_float, firsts=1, options=(*FLOAT, *SCALED)),
    "int": FormatFamily(
        example="int8:channel", made=_integer, options=(*SCALED, "asym", "full", _FULL_RANGE)
    ),
    "fixed": FormatFamily(example="fixed:8.4", made=_build_fixed_point, firsts=1),
    "mx": FormatFamily(example="mx:e2m1", made=_mx, firsts=1, options=("block", "scale", "full")),
    "nvfp4": FormatFamily(example="nvfp4", made=_nvfp4, options=("block", "single")),
    "bfp": FormatFamily(example="bfp:m4,b16", made=_bfp, firsts=2),
    "posit": FormatFamily(example="posit:8,1", made=_posit, firsts=2, options=SCALED),
    "adaptivfloat": FormatFamily(
        example="adaptivfloat:8,3", made=_adaptivfloat, firsts=2, options=("variant", *SPANS)
    ),
    "nxfp": FormatFamily(
        example="nxfp:4", made=_nxfp, firsts=1, options=("block", "nano", "micro", "recycle")
    ),
    "nf4": FormatFamily(example="nf4", made=_nf4, options=("block", "scale", "double")),
    "log": FormatFamily(example="log:4", made=_log, firsts=1, options=("nearest", *SPANS)),
    "ternary": FormatFamily(example="ternary", made=_ternary, options=SPANS, has_chance=False),
    "binary": FormatFamily(example="binary", made=_binary, options=SPANS, has_chance=False),
    "kmeans": FormatFamily(example="kmeans:4", made=_kmeans, firsts=1, options=("exact",)),
}
