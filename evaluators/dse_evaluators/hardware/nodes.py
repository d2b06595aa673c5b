"""Technology nodes: energy, area, speed relative to a reference node, and leakage."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from dse.core.values import Value
from dse.errors import SpecError
from dse_evaluators.accelerators.circuits import leakage_w_per_mm2, logic_energy_factor
from dse_evaluators.accelerators.technology import (
    NODES_NM,
    REFERENCE_NM,
    SRAM_ACCESS_S,
    SRAM_AREA_MM2,
    SRAM_READ_J,
    SRAM_WRITE_J,
    PowerLaw,
)
from dse_evaluators.readings import number

SMALLEST_FITTED_NM, LARGEST_NM = NODES_NM


@dataclass(frozen=True, slots=True, kw_only=True)
class Below:
    """Published values of a technology node below 22 nm.

    The SRAM fit covers 22 nm and above.
    """

    nm: float
    cell_um2: float
    """Area of a high-density SRAM cell."""
    delay: float
    """Fan-out-of-four delay at 0.9 V, in the units of :data:`DELAY_45` (12.63 at 45 nm)."""
    logic_energy: float | None = None
    """Logic energy relative to 7 nm, for a node below the power law through 45 and 7 nm."""


# Cells: Auth et al., VLSI 2012 (22 nm: 0.092); Wu et al., IEDM 2013 (16 nm: 0.07); Wu et al., IEDM
# 2016 (7 nm: 0.027); Yeap et al., IEDM 2019 (5 nm: 0.021); 10 nm: TSMC's 0.042, given at VLSI 2016.
# Delays: A. Stillmaker, B. Baas, Scaling equations for the accurate prediction of CMOS device
# performance from 180 nm to 7 nm, Integration 2017, table of delay polynomials, at 0.9 V; 16 nm is
# that of their 14 nm. At 5 nm: 15 % faster or 30 % less power than at 7 nm (TSMC at IEDM 2019).
CELL_22_UM2 = 0.092
DELAY_45 = 12.63
BELOW: Mapping[float, Below] = {
    one.nm: one
    for one in (
        Below(nm=16.0, cell_um2=0.070, delay=4.189),
        Below(nm=10.0, cell_um2=0.042, delay=3.388),
        Below(nm=7.0, cell_um2=0.027, delay=2.667),
        Below(nm=5.0, cell_um2=0.021, delay=2.667 / 1.15, logic_energy=0.7),
    )
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TechnologyNode:
    """Scaling factors of a technology node relative to 45 nm, and its leakage per mm2.

    Both nodes are at nominal voltage. ``extrapolated`` marks nodes smaller than those of the SRAM
    fit: their cell areas and delays are those of :data:`BELOW`, their SRAM access energies and
    leakage per mm2 those of 22 nm.
    """

    nm: float
    logic_energy: float
    read_energy: float
    write_energy: float
    area: float
    speed: float
    leakage_w_per_mm2: float
    extrapolated: bool


def check_node(name: str, value: Value) -> None:
    """Check that an input's value is a technology node in nm with known data.

    Raises:
        SpecError: there are no figures for the node, or it is not a number.
    """
    number(-math.inf, math.inf, unit="nm")(name, value)
    node_of(float(value))


def node_of(nm: float) -> TechnologyNode:
    """Return the scaling factors of a technology node: 22 to 90 nm, or 16, 10, 7 or 5 nm.

    Raises:
        SpecError: there are no figures for the node.
    """
    below = BELOW.get(nm)
    if below is None and not SMALLEST_FITTED_NM <= nm <= LARGEST_NM:
        known = ", ".join(f"{one:g}" for one in sorted(BELOW))
        raise SpecError(f"there are no figures for {nm:g} nm", hint=f"{known}, or 22 to 90")
    fitted = nm if below is None else SMALLEST_FITTED_NM
    area = _law(SRAM_AREA_MM2, fitted)
    return TechnologyNode(
        nm=nm,
        logic_energy=_logic_energy(nm, below),
        read_energy=_law(SRAM_READ_J, fitted),
        write_energy=_law(SRAM_WRITE_J, fitted),
        area=area if below is None else area * below.cell_um2 / CELL_22_UM2,
        speed=1.0 / _law(SRAM_ACCESS_S, nm) if below is None else DELAY_45 / below.delay,
        leakage_w_per_mm2=leakage_w_per_mm2(fitted),
        extrapolated=below is not None,
    )


def _logic_energy(nm: float, below: Below | None) -> float:
    if below is None or below.logic_energy is None:
        return logic_energy_factor(nm)
    return logic_energy_factor(7.0) * below.logic_energy


def _law(law: PowerLaw, nm: float) -> float:
    return math.pow(nm / REFERENCE_NM, law.node)
