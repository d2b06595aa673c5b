"""Options of several format families: how many values share a scale, and how it is fitted."""

from __future__ import annotations

import re
from typing import Literal

from dse.errors import SpecError
from dse_evaluators.formats.affine import AffineScaling
from dse_evaluators.formats.layout import Span, Tile
from dse_evaluators.formats.linear import Linear, Measure
from dse_evaluators.formats.request import FormatSpec
from dse_evaluators.formats.scaling import Scaling
from dse_evaluators.formats.stored import STORED

Reach = Literal["tensor", "channel", "group", "block"]
SPANS: tuple[Reach, ...] = ("tensor", "channel", "group", "block")
MEASURES: tuple[Measure, ...] = ("max", "percentile", "mse", "rms")
SCALED = (*SPANS, *MEASURES, "scale")

LONGEST = 1 << 20


def span(request: FormatSpec, default: Span) -> Span:
    """Return which values share a scale: a number of values, a tile, channel or tensor."""
    match request.one_of(SPANS):
        case "group":
            return request.number("group", (1, LONGEST), 32)
        case "block":
            return _tile(request)
        case "tensor":
            return "tensor"
        case "channel":
            return "channel"
        case None:
            return default


def _tile(request: FormatSpec) -> Tile:
    """Return the block of a matrix of the option ``block=128x128``, which is also its default.

    Raises:
        SpecError: the option is not two whole numbers, or one is out of range.
    """
    written = request.options["block"]
    if not written:
        return Tile()
    found = re.fullmatch(r"(-?\d+)x(-?\d+)", written)
    if found is None:
        raise SpecError(
            f"in the format {request.text!r}, block is {written!r}",
            hint="rows and columns of a block of the matrix, as in block=128x128",
        )
    rows = request.whole("the rows of block", found[1], (1, LONGEST), letter="block=")
    columns = request.whole("the columns of block", found[2], (1, LONGEST), letter=f"{rows}x")
    return Tile(rows=rows, columns=columns)


def block(request: FormatSpec, default: int) -> int:
    """Return the value of the option ``block``: the number of values in a block, or a default."""
    return request.number("block", (1, LONGEST), default)


def linear(request: FormatSpec, default: Span = "tensor", steps: int | None = None) -> Scaling:
    """Return the scaling that the options define: symmetric, or affine if ``asym`` is given.

    Args:
        request: the format's name, parsed.
        default: how many values share a scale if no option states it.
        steps: number of steps from the lowest to the highest code, for an integer format whose
            scale is the range of the values divided by it (``full-range``); ``None`` for other
            formats.

    Raises:
        SpecError: options contradict each other, or a value is invalid.
    """
    reach = span(request, default)
    stored = request.word("scale", tuple(STORED), "fp16")
    measure = request.one_of(MEASURES) or "max"
    if "asym" not in request.options:
        percent = _percent(request) if measure == "percentile" else 100.0
        return Linear(span=reach, measure=measure, percentile=percent, stored=stored, steps=steps)
    if measure in ("percentile", "rms"):
        raise SpecError(
            f"the format {request.text!r} has a zero point, which {measure} does not support",
            hint="asym goes with max or mse",
        )
    return AffineScaling(
        span=reach,
        measure="mse" if measure == "mse" else "max",
        stored=stored,
        one_division=steps is not None,
    )


def _percent(request: FormatSpec) -> float:
    """Return the option ``percentile`` as a number of percent.

    Raises:
        SpecError: it is not a number above 0 and up to 100.
    """
    written = request.options["percentile"]
    try:
        value = float(written)
    except ValueError:
        value = 0.0
    if not 0 < value <= 100:
        raise SpecError(
            f"in the format {request.text!r}, percentile is {written!r}",
            hint="a number above 0 and up to 100, as in percentile=99.9",
        )
    return value
