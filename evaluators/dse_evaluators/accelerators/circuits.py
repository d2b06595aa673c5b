"""Energy and area of multiply-accumulators and SRAMs at a node, from the technology tables."""

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
    """Energy of one multiply-accumulate by format code: [weight, activation]."""
    return _over_formats(mac_energy_j) * logic_energy_factor(node_nm)


@cache
def mac_areas_mm2(node_nm: float) -> Floats:
    """Area of one multiplier with its adder by format code: [weight, activation].

    Logic shrinks as the SRAM does; registers, control and wiring are not counted.
    """
    return _over_formats(mac_area_mm2) * (node_nm / REFERENCE_NM) ** SRAM_AREA_MM2.node


def mac_energy_j(weight: NumberFormat, activation: NumberFormat) -> float:
    """A multiply and the add to a partial sum of 32 bits, at 45 nm.

    A multiplier costs a power of the product of its operands' widths; the power is that between
    the two multipliers of the table. One float operand makes it a float multiplier.
    """
    small, large, add = _units(weight, activation)
    power = math.log(large.energy_j / small.energy_j) / math.log(large.width / small.width) / 2
    return small.energy_j * _relative(weight, activation, small) ** power + add.energy_j


def mac_area_mm2(weight: NumberFormat, activation: NumberFormat) -> float:
    """A multiplier and an adder at 45 nm, by the rule of :func:`mac_energy_j`."""
    small, large, add = _units(weight, activation)
    power = math.log(large.area_mm2 / small.area_mm2) / math.log(large.width / small.width) / 2
    return small.area_mm2 * _relative(weight, activation, small) ** power + add.area_mm2


def logic_energy_factor(node_nm: float) -> float:
    """Energy of logic at a node over that at 45 nm: a power law through 45 and 7 nm.

    Its power is the median over the operations of the table.
    """
    shrink = math.log(REFERENCE_NM / 7.0)
    power = median(math.log(row.energy_j / row.energy_7nm_j) / shrink for row in OPERATIONS)
    return float((node_nm / REFERENCE_NM) ** power)


def leakage_w_per_mm2(node_nm: float) -> float:
    """Leakage of a mm2 at a node, between the tabulated ones in the logarithm."""
    logs = np.log(list(LEAKAGE_W_PER_MM2)), np.log(list(LEAKAGE_W_PER_MM2.values()))
    return float(np.exp(np.interp(np.log(node_nm), *logs)))


def sram(law: PowerLaw, size_bytes: Floats, bus_bits: Floats, node_nm: float) -> Floats:
    """One quantity of an SRAM macro by its fitted law."""
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
    """Bits that a multiplier multiplies: all of an integer, a float's significand."""
    return word.bits if word.kind == "int" else word.mantissa + 1


def _over_formats(cost: Callable[[NumberFormat, NumberFormat], float]) -> Floats:
    return np.array([[cost(w, a) for a in FORMATS.values()] for w in FORMATS.values()])
