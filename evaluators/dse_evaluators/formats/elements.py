"""Element formats of number formats: what a multiplier reads, and what is stored beside it."""

from __future__ import annotations

import re
from functools import lru_cache

from dse.errors import SpecError
from dse_evaluators.formats.adaptive import Adaptive
from dse_evaluators.formats.format import Format
from dse_evaluators.formats.grid import Grid
from dse_evaluators.formats.integers import Integers
from dse_evaluators.formats.layout import option_of
from dse_evaluators.formats.minifloat import Minifloat
from dse_evaluators.formats.names import format_of
from dse_evaluators.formats.words import FORMATS, NumberFormat

_OWN_GRID = ("kmeans", "nf4", "nxfp", "posit", "log", "binary")
"""Families whose codes are neither integers nor floats: a multiplier needs them decoded."""


@lru_cache(maxsize=1024)
def element_of(text: str) -> NumberFormat:
    """Return the format of the codes that a multiplier reads: an integer or a float.

    The result is ``int4`` for ``int4:group=32,asym``, ``fp6_e2m3`` for ``mx:e2m3``, and ``int2``
    for ``ternary``. Scales and zero points are applied outside the multiplier.

    Args:
        text: a name of :mod:`.words`, or any text of :func:`~.names.format_of`.

    Raises:
        SpecError: the format is unknown, or its codes are neither integers nor floats of
            :mod:`.words`; the hint names the nearest format that a multiplier can read.
    """
    if text in FORMATS:
        return FORMATS[text]
    form = format_of(text)
    family = re.split("[:,]", form.name)[0]
    name = "" if family.startswith(_OWN_GRID) else _element_name(form.grid)
    if name in FORMATS:
        return FORMATS[name]
    raise SpecError(
        f"there is no multiplier for {text!r}",
        hint=f"its codes are no integers or floats of a standard; did you mean {_near(form)!r}?",
    )


def scale_bits(text: str, rows: int, length: int) -> float:
    """Return the bits of scales, zero points and codebooks for each number of a tensor.

    Args:
        text: the format's name. A bare name of :mod:`.words`, such as ``int8``, has no scales.
        rows: rows of the tensor.
        length: numbers of a row, along which scales run.

    Raises:
        EvaluationError: the blocks of the format do not fit the rows.
    """
    if text in FORMATS:
        return 0.0
    size = format_of(text).bits((rows, length))
    return (size.total - size.payload) / size.numbers


def _element_name(grid: Grid) -> str:
    """Return the name of a grid's numbers in :mod:`.words`; empty if there is none."""
    if isinstance(grid, Integers):
        return f"int{grid.bits}"
    if isinstance(grid, Minifloat | Adaptive):
        return _FLOATS.get((grid.exponent, grid.mantissa), "")
    return ""


def _near(form: Format) -> str:
    """Return the format with a multiplier that is nearest to a format without one.

    For a float it is the smallest one that holds its exponent and mantissa; for other codes it is
    an integer of as many bits, with a scale for as many numbers.
    """
    grid, span = form.grid, form.scaling.span
    if isinstance(grid, Minifloat | Adaptive):
        wide = [
            row
            for row in FORMATS.values()
            if row.exponent >= grid.exponent and row.mantissa >= grid.mantissa
        ]
        if wide:
            return min(wide, key=lambda row: (row.bits, row.exponent)).name
    bits = max(grid.bits, 2)
    return f"int{bits}:{option_of(span)}"


_FLOATS = {(row.exponent, row.mantissa): row.name for row in FORMATS.values() if row.exponent}
