"""Manufacturing emissions per mm2 of wafer, before yield."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

import numpy as np

from dse.errors import SpecError
from dse_evaluators.carbon.grids import grid_kg_per_j

_MM2_PER_CM2 = 100.0
_J_PER_KWH = 3.6e6


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """Energy and emissions of wafer fabrication at a node: kWh/cm2, and g/cm2 of gases, materials.

    Emissions from gases are given for abatement of 95 and of 99 percent.
    """

    energy_kwh: float
    gas_95_g: float
    gas_99_g: float
    materials_g: float = 500.0


# By node in nm. ACT, ISCA 2022: epa.yaml, gpa_95.yaml, gpa_99.yaml and materials.yaml of its public
# tables (facebookresearch/ACT, MIT).
PROCESSES: Mapping[float, Process] = {
    28.0: Process(energy_kwh=0.9, gas_95_g=175.0, gas_99_g=100.0),
    20.0: Process(energy_kwh=1.2, gas_95_g=190.0, gas_99_g=110.0),
    14.0: Process(energy_kwh=1.2, gas_95_g=200.0, gas_99_g=125.0),
    10.0: Process(energy_kwh=1.475, gas_95_g=240.0, gas_99_g=150.0),
    8.0: Process(energy_kwh=1.52, gas_95_g=240.0, gas_99_g=150.0),
    7.0: Process(energy_kwh=2.15, gas_95_g=350.0, gas_99_g=200.0),
    5.0: Process(energy_kwh=2.75, gas_95_g=430.0, gas_99_g=225.0),
    3.0: Process(energy_kwh=3.25, gas_95_g=470.0, gas_99_g=275.0),
}


def process_of(nm: float) -> Process:
    """Return the energy and emissions of a technology node, interpolated over log(nm).

    Nodes larger than 28 nm get the values of 28 nm.

    Raises:
        SpecError: the node is smaller than the smallest tabulated one.
    """
    if not nm >= min(PROCESSES):
        raise SpecError(f"no figures for wafers of {nm:g} nm", hint=f"{min(PROCESSES):g} or more")
    nodes = sorted(PROCESSES)
    at = np.log(nm), np.log(nodes)
    values = {
        one.name: float(np.interp(*at, [getattr(PROCESSES[node], one.name) for node in nodes]))
        for one in fields(Process)
    }
    return Process(**values)


def carbon_kg_per_mm2(nm: float, *, grid: str = "taiwan", abatement: float = 97.0) -> float:
    """Return the manufacturing emissions of a mm2 of wafer in kg, whether its die works or not.

    Args:
        nm: technology node in nm.
        grid: electricity grid of the fab, a name of :mod:`.grids`.
        abatement: percent of the process gases that the fab destroys, 95 to 99; values in between
            are interpolated linearly.

    Raises:
        SpecError: the node, grid or abatement is invalid.

    Source:
        Gupta et al., ACT, ISCA 2022, equation 5 without its yield: CI * EPA + GPA + MPA.
    """
    if not 95.0 <= abatement <= 99.0:
        raise SpecError(f"abatement is {abatement:g}", hint="95 to 99 percent")
    process = process_of(nm)
    gas_g = float(np.interp(abatement, (95.0, 99.0), (process.gas_95_g, process.gas_99_g)))
    energy_kg = process.energy_kwh * _J_PER_KWH * grid_kg_per_j(grid)
    return (energy_kg + (gas_g + process.materials_g) * 1e-3) / _MM2_PER_CM2


def is_in_table(nm: float) -> bool:
    """Return whether the technology node is within the table of processes.

    Nodes larger than those in the table are assumed to emit as 28 nm.
    """
    return min(PROCESSES) <= nm <= max(PROCESSES)
