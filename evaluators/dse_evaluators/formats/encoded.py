"""A tensor as it is stored: a code for each number, and what is beside the codes."""

from __future__ import annotations

from dataclasses import dataclass

from dse_evaluators.formats.arrays import Words
from dse_evaluators.formats.layout import Axis
from dse_evaluators.formats.scaling import Sides


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Encoded:
    """Codes in the order of the rows that scales run along."""

    shape: tuple[int, ...]
    axis: Axis
    codes: Words  # (n,)
    sides: Sides
