"""Energy, power and area of a workload on an accelerator."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from dse.core.values import Floats
from dse_evaluators.accelerators.circuits import (
    mac_areas_mm2,
    mac_energies_j,
    sram,
)
from dse_evaluators.accelerators.systolic.compressed import inputs_per_row
from dse_evaluators.accelerators.systolic.systolic_parameters import FLOW_CODES, Settings, word_bits
from dse_evaluators.accelerators.systolic.totals import BufferTraffic, Totals
from dse_evaluators.accelerators.systolic.vector import lane_area_mm2, lane_energy_j
from dse_evaluators.accelerators.technology import (
    NOMINAL_V,
    SRAM_AREA_MM2,
    SRAM_BUS_BITS,
    SRAM_READ_J,
    SRAM_WRITE_J,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Technology:
    """Technology parameters of the chip and its DRAM."""

    node_nm: float
    dram_j_per_byte: float
    leakage_w_per_mm2: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Charges:
    """Switching energies [J] at nominal voltage, and chip area [mm2], of n designs; each (n,)."""

    macs_j: Floats
    srams_j: Floats
    vectors_j: Floats
    dram_j: Floats
    area_mm2: Floats


def charges(totals: Totals, knobs: Settings, technology: Technology, *, weighted: bool) -> Charges:
    """Compute the switching energies and the area of a workload on an accelerator.

    ``weighted`` states whether the right-hand operands of all GEMMs are weights. If not, the
    multipliers must also be large enough for products of two activations.
    """
    node = technology.node_nm
    area = knobs.rows * knobs.cols * _largest(mac_areas_mm2(node), knobs, weighted=weighted)
    srams_j = np.zeros(1)
    for size, bus, traffic in _buffers(totals, knobs, weighted=weighted):
        read_j = sram(SRAM_READ_J, size, bus, node) * traffic.read_bytes
        write_j = sram(SRAM_WRITE_J, size, bus, node) * traffic.written_bytes
        srams_j = srams_j + (read_j + write_j) / (bus / 8.0)
        area = area + sram(SRAM_AREA_MM2, size, bus, node)
    return Charges(
        macs_j=_macs_j(totals, knobs, node),
        srams_j=srams_j,
        vectors_j=totals.outputs
        * knobs.vector_ops
        * lane_energy_j(node)
        * (knobs.vector_lanes > 0),
        dram_j=totals.dram_bytes * technology.dram_j_per_byte,
        area_mm2=knobs.cores * (area + knobs.vector_lanes * lane_area_mm2(node)),
    )


def costs(
    charge: Charges, latency_s: Floats, voltage_v: Floats, technology: Technology
) -> dict[str, Floats]:
    """Compute latency, energy by component, power and area; SI units except area in mm2.

    The chip's switching energy is proportional to the square of its voltage, its leakage power to
    the voltage (the dependence of the leakage current on it is ignored); DRAM has its own supply.

    Source:
        A. Chandrakasan, S. Sheng, R. Brodersen: Low-Power CMOS Digital Design, JSSC 1992,
        equations 1 and 2.
    """
    raised = voltage_v / NOMINAL_V
    area = charge.area_mm2
    parts = {
        "mac_energy": charge.macs_j * raised**2,
        "sram_energy": charge.srams_j * raised**2,
        "vector_energy": charge.vectors_j * raised**2,
        "dram_energy": charge.dram_j,
        "leakage_energy": area * latency_s * technology.leakage_w_per_mm2 * raised,
    }
    energy = sum(parts.values(), start=np.zeros(1))
    return {
        "latency": latency_s,
        "energy": energy,
        "power": energy / latency_s,
        "area": area,
        **parts,
    }


def _macs_j(totals: Totals, knobs: Settings, node_nm: float) -> Floats:
    weights, activations = _by_format(mac_energies_j(node_nm), knobs)
    of_weights = totals.weighted_macs * (1.0 - knobs.sparsity) * weights
    return of_weights + totals.unweighted_macs * activations


def _largest(table: Floats, knobs: Settings, *, weighted: bool) -> Floats:
    weights, activations = _by_format(table, knobs)
    return weights if weighted else np.maximum(weights, activations)


def _by_format(table: Floats, knobs: Settings) -> tuple[Floats, Floats]:
    """Return a table's values for products weight x activation and activation x activation."""
    weights, activations = (
        knobs.weight_format.astype(np.intp),
        knobs.activation_format.astype(np.intp),
    )
    return table[weights, activations], table[activations, activations]


def _buffers(
    totals: Totals, knobs: Settings, *, weighted: bool
) -> Iterator[tuple[Floats, Floats, BufferTraffic]]:
    """Yield, for each kind of buffer, its size [bytes], the bits per access and its traffic."""
    width = edges(knobs, weighted=weighted)
    buffers = totals.buffers
    yield knobs.ifmap_sram, np.clip(width.ifmap_bits, *SRAM_BUS_BITS), buffers.ifmap
    yield knobs.filter_sram, np.clip(width.filter_bits, *SRAM_BUS_BITS), buffers.filter
    yield knobs.ofmap_sram, np.clip(width.ofmap_bits, *SRAM_BUS_BITS), buffers.ofmap
    if knobs.accumulator_sram.any():
        bus = np.clip(width.accumulator_bits, *SRAM_BUS_BITS)
        yield knobs.accumulator_sram, bus, buffers.accumulator


@dataclass(frozen=True, slots=True, kw_only=True)
class Edges:
    """Bits per cycle at each edge of a systolic array; every field is (n,) or (1,)."""

    ifmap_bits: Floats
    filter_bits: Floats
    ofmap_bits: Floats
    accumulator_bits: Floats


def edges(knobs: Settings, *, weighted: bool) -> Edges:
    """Return the bits per cycle that the designs' arrays exchange with each buffer.

    The stationary operand is loaded down the columns of the array. With N:M sparsity, each row
    receives several inputs per weight, from which it selects. Unless all right-hand operands are
    ``weighted``, the filter edge carries activations too and has the width of the wider format.
    """
    inputs, weights = word_bits(knobs.activation_format), word_bits(knobs.weight_format)
    right = weights if weighted else np.maximum(weights, inputs)
    inputs_stay = knobs.dataflow == FLOW_CODES["is"]
    outputs_stay = knobs.dataflow == FLOW_CODES["os"]
    choice = inputs_per_row(knobs.n_m)
    return Edges(
        ifmap_bits=np.where(inputs_stay, knobs.cols, knobs.rows) * inputs * choice,
        filter_bits=np.where(inputs_stay, knobs.rows, knobs.cols) * right,
        ofmap_bits=knobs.cols * np.where(outputs_stay, inputs, knobs.accumulator_bits),
        accumulator_bits=knobs.cols * knobs.accumulator_bits,
    )
