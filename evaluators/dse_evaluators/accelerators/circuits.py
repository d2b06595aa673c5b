"""Energy and area of multiply-accumulate units and SRAMs at a technology node, from tables."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from statistics import median

import numpy as np

from dse.core.values import Floats
from dse_evaluators.accelerators.technology import (
    FP16_MULTIPLY,
    FP32_ADD,
    FP32_MULTIPLY,
    INT8_MULTIPLY,
    INT32_ADD,
    INT32_MULTIPLY,
    LEAKAGE_W_PER_MM2,
    OPERATIONS,
    REFERENCE_NM,
    SRAM_AREA_MM2,
    Operation,
    PowerLaw,
)
from dse_evaluators.formats.words import FORMATS, NumberFormat


@cache
def mac_energies_j(node_nm: float) -> Floats:
    """Return multiply-accumulate energies [J] as a table [weight format, activation format]."""
    return _over_formats(mac_energy_j) * logic_energy_factor(node_nm)


@cache
def mac_areas_mm2(node_nm: float) -> Floats:
    """Return multiplier plus adder areas [mm2] as a table [weight format, activation format].

    Logic area scales with the node as SRAM area does; registers, control and wiring are excluded.
    """
    return _over_formats(mac_area_mm2) * (node_nm / REFERENCE_NM) ** SRAM_AREA_MM2.node


def mac_energy_j(weight: NumberFormat, activation: NumberFormat) -> float:
    """Return the energy [J] of a multiply and an add to a 32-bit partial sum, at 45 nm.

    The energy of a multiplier is a power law of the product of its operands' widths; the exponent
    is fitted to the two multipliers of the technology table. If one operand is a float, the
    multiplier is a float multiplier.
    """
    small, large, add = _units(weight, activation)
    power = math.log(large.energy_j / small.energy_j) / math.log(large.width / small.width) / 2
    return small.energy_j * _relative(weight, activation, small) ** power + add.energy_j


def mac_area_mm2(weight: NumberFormat, activation: NumberFormat) -> float:
    """Return the area [mm2] of a multiplier and an adder at 45 nm.

    The area of a multiplier is a power law of the product of its operands' widths, whose exponent
    is fitted to the two multipliers of the technology table.
    """
    small, large, add = _units(weight, activation)
    power = math.log(large.area_mm2 / small.area_mm2) / math.log(large.width / small.width) / 2
    return small.area_mm2 * _relative(weight, activation, small) ** power + add.area_mm2


def logic_energy_factor(node_nm: float) -> float:
    """Return the energy of logic at a node relative to 45 nm: a power law through 45 and 7 nm.

    The exponent of the power law is the median over the operations of the technology table.
    """
    shrink = math.log(REFERENCE_NM / 7.0)
    power = median(math.log(row.energy_j / row.energy_7nm_j) / shrink for row in OPERATIONS)
    return float((node_nm / REFERENCE_NM) ** power)


def leakage_w_per_mm2(node_nm: float) -> float:
    """Return the leakage power [W/mm2] at a node, interpolated log-log between tabulated nodes."""
    logs = np.log(list(LEAKAGE_W_PER_MM2)), np.log(list(LEAKAGE_W_PER_MM2.values()))
    return float(np.exp(np.interp(np.log(node_nm), *logs)))


def sram(law: PowerLaw, size_bytes: Floats, bus_bits: Floats, node_nm: float) -> Floats:
    """Evaluate a fitted power law for n SRAM macros: energy per access, area or access time.

    The variables of the power law are the size, the bits per access and the technology node.
    """
    scale = law.scale * (node_nm / REFERENCE_NM) ** law.node
    return scale * (size_bytes / 1024.0) ** law.size * (bus_bits / 64.0) ** law.bus


def _units(
    weight: NumberFormat, activation: NumberFormat
) -> tuple[Operation, Operation, Operation]:
    if weight.kind == activation.kind == "int":
        return INT8_MULTIPLY, INT32_MULTIPLY, INT32_ADD
    return FP16_MULTIPLY, FP32_MULTIPLY, FP32_ADD


def _relative(weight: NumberFormat, activation: NumberFormat, unit: Operation) -> float:
    return _width(weight) * _width(activation) / unit.width**2


def _width(word: NumberFormat) -> int:
    """Return the operand width of a multiplier: bits of an integer, or of a float's significand."""
    return word.bits if word.kind == "int" else word.mantissa + 1


def _over_formats(cost: Callable[[NumberFormat, NumberFormat], float]) -> Floats:
    return np.array([[cost(w, a) for a in FORMATS.values()] for w in FORMATS.values()])
