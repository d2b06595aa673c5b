"""Carbon intensity of electricity, by energy source and by location."""

from __future__ import annotations

from collections.abc import Mapping

from dse.errors import SpecError, nearest

_KG_PER_J = 1e-3 / 3.6e6
"""Conversion from g/kWh to kg/J."""

# g/kWh. U. Gupta et al., ACT: Designing Sustainable Computer Systems With An Architectural Carbon
# Modeling Tool, ISCA 2022, from its public tables (facebookresearch/ACT, MIT): source.yaml,
# location_2023.yaml, and for Taiwan and Australia also the 2022 figures that its tests use.
GRIDS: Mapping[str, float] = {
    "coal": 820.0,
    "gas": 490.0,
    "biomass": 230.0,
    "solar": 41.0,
    "geothermal": 38.0,
    "hydropower": 24.0,
    "nuclear": 12.0,
    "wind": 11.0,
    "world": 481.0,
    "india": 713.0,
    "australia": 549.0,
    "taiwan": 642.0,
    "singapore": 471.0,
    "usa": 369.0,
    "europe": 300.0,
    "brazil": 98.0,
    "iceland": 7.3,
    "korea": 402.0,
    "japan": 446.0,
    "taiwan-2022": 583.0,
    "australia-2022": 597.0,
}


def grid_kg_per_j(grid: str) -> float:
    """Return the emissions of electricity from this grid, in kg/J.

    Raises:
        SpecError: there is no such grid.
    """
    if grid not in GRIDS:
        raise SpecError(f"there is no grid {grid!r}", hint=nearest(grid, GRIDS))
    return GRIDS[grid] * _KG_PER_J
