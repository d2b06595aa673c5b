"""Encoded tensor: one code per value, and the scales and other fields stored with the codes."""

from __future__ import annotations

from dataclasses import dataclass

from dse_evaluators.formats.arrays import Words
from dse_evaluators.formats.layout import Axis
from dse_evaluators.formats.scaling import Sides


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Encoded:
    """Quantized tensor: its codes, with rows along ``axis`` in order, and its scales."""

    shape: tuple[int, ...]
    axis: Axis
    codes: Words  # (n,)
    sides: Sides
