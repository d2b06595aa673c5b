"""Cost of a multiply-accumulate by format: the multiplier, the adder, and block scaling."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dse_evaluators.accelerators.circuits import mac_area_mm2, mac_energy_j
from dse_evaluators.accelerators.technology import (
    FP32_ADD,
    FP32_MULTIPLY,
    INT8_ADD,
    INT32_ADD,
    Operation,
)
from dse_evaluators.formats.elements import element_of
from dse_evaluators.formats.layout import Tile
from dse_evaluators.formats.names import format_of
from dse_evaluators.formats.shared_exponent import SharedExponent
from dse_evaluators.formats.words import FORMATS, NumberFormat


@dataclass(frozen=True, slots=True, kw_only=True)
class MacOperand:
    """Operand of a multiplier: an element format, and the number of elements that share a scale.

    ``scale_steps`` are the operations that apply the scales of two blocks of operands, once per
    block: scales that are exponents are added; others are multiplied, and their product multiplies
    the partial sum.
    """

    element: NumberFormat
    block: int = 1
    scale_steps: tuple[Operation, ...] = ()


_EXPONENTS = (INT8_ADD, FP32_ADD)
_SCALES = (FP32_MULTIPLY, FP32_MULTIPLY, FP32_ADD)

# Elements and blocks: OCP Microscaling Formats (MX) 1.0, table 1; NVFP4: blocks of 16 with a scale
# in E4M3 (NVIDIA, Introducing NVFP4, 2025). The scale steps are this project's own count.
_BLOCKED = {
    "mxfp8_e5m2": ("fp8_e5m2", 32, _EXPONENTS),
    "mxfp8_e4m3": ("fp8_e4m3", 32, _EXPONENTS),
    "mxfp6_e3m2": ("fp6_e3m2", 32, _EXPONENTS),
    "mxfp6_e2m3": ("fp6_e2m3", 32, _EXPONENTS),
    "mxfp4": ("fp4_e2m1", 32, _EXPONENTS),
    "mxint8": ("int8", 32, _EXPONENTS),
    "nvfp4": ("fp4_e2m1", 16, _SCALES),
}

WORDS: Mapping[str, MacOperand] = {
    name: MacOperand(element=row) for name, row in FORMATS.items()
} | {
    name: MacOperand(element=FORMATS[element], block=block, scale_steps=steps)
    for name, (element, block, steps) in _BLOCKED.items()
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Mac:
    """Area and energies (multiply, add, scale) of a multiply-accumulate at 45 nm and 0.9 V."""

    multiply_j: float
    add_j: float
    scale_j: float
    area_mm2: float


def word_of(name: str) -> MacOperand:
    """Return the multiplier operand of a number format, such as ``int8`` or ``mxfp4``.

    A scale for a row or for the entire tensor is applied once to a result, and is not counted. With
    square blocks such as ``block=128x128``, a sum of products has a scale for each block that it
    crosses.

    Raises:
        SpecError: there is no multiplier for the format.
    """
    if name in WORDS:
        return WORDS[name]
    element, scaling = element_of(name), format_of(name).scaling
    width = scaling.span.columns if isinstance(scaling.span, Tile) else scaling.span
    if not isinstance(width, int):
        return MacOperand(element=element)
    steps = _EXPONENTS if isinstance(scaling, SharedExponent) else _SCALES
    return MacOperand(element=element, block=width, scale_steps=steps)


def mac_of(weight: MacOperand, activation: MacOperand) -> Mac:
    """Return the cost of one multiply-accumulate of two operands.

    The cost of applying block scales is divided by the smaller block size.
    """
    pair = weight.element, activation.element
    adder = INT32_ADD if {one.kind for one in pair} == {"int"} else FP32_ADD
    steps = max(weight.scale_steps, activation.scale_steps, key=_energy_j)
    block = min((one.block for one in (weight, activation) if one.scale_steps), default=1)
    return Mac(
        multiply_j=mac_energy_j(*pair) - adder.energy_j,
        add_j=adder.energy_j,
        scale_j=_energy_j(steps) / block,
        area_mm2=mac_area_mm2(*pair) + sum(step.area_mm2 for step in steps) / block,
    )


def _energy_j(steps: tuple[Operation, ...]) -> float:
    return sum(step.energy_j for step in steps)
