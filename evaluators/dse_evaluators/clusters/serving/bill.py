"""Cost and carbon of a generated token: rent of devices, operational and embodied carbon."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from dse.core.batch import Batch
from dse.core.metric import Metric
from dse.core.values import Floats, Value
from dse_evaluators.carbon.grids import GRIDS
from dse_evaluators.clusters.upkeep import Upkeep

COST = Metric(name="cost_per_token", unit="USD", goal="minimize")
CARBON = (
    Metric(name="carbon_per_token", unit="kg", goal="minimize"),
    Metric(name="operational_carbon", unit="kg", part_of="carbon_per_token"),
    Metric(name="embodied_carbon", unit="kg", part_of="carbon_per_token"),
)


def bill(upkeep: Upkeep, device_s: Floats, energy_j: Floats, emitted: Floats) -> dict[str, Floats]:
    """Return the carbon [kg] of a generated token, and its cost if a device's price is known.

    Args:
        upkeep: price and emissions of one device.
        device_s: device-seconds per token, summed over all devices, (n,).
        energy_j: joules per token, (n,).
        emitted: kg of carbon per joule of a device, (n,).
    """
    operational, embodied = energy_j * emitted, upkeep.embodied_share_kg(device_s)
    dollars = {COST.name: upkeep.dollars(device_s)} if upkeep.priced else {}
    return {
        **dollars,
        "carbon_per_token": operational + embodied,
        "operational_carbon": operational,
        "embodied_carbon": embodied,
    }


def compute_emissions(batch: Batch, grid: str | None, pue: float) -> Floats:
    """Return the emissions of each design's power grid, in kg per joule of a device, (n,).

    The overhead of the building (``pue``) is included. With ``grid`` of ``None`` the batch's column
    of that name is read.
    """
    table: Mapping[Value, float] = {
        name: float(Upkeep(device="", grid=name, pue=pue).operational_kg(np.ones(1))[0])
        for name in (GRIDS if grid is None else (grid,))
    }
    if grid is None:
        return batch.lookup("grid", table)
    return np.full(len(batch), table[grid])
