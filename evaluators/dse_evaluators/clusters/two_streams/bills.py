"""Energy, cost and carbon of device time, by type of cluster node."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from dse.core.batch import Batch
from dse.core.values import Floats, Value
from dse_evaluators.accelerators.devices.devices import device_of
from dse_evaluators.clusters.two_streams.machines import MACHINES, ClusterNode
from dse_evaluators.clusters.upkeep import Upkeep

_ONE = np.ones(1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bills:
    """Power, price and carbon of a device per second, by the name of its cluster node type."""

    watts: Mapping[Value, float]
    """Power limit of a device [W]."""
    dollars: Mapping[Value, float]
    """US dollars per device and second."""
    made_kg: Mapping[Value, float]
    """Embodied carbon per device and second [kg]."""
    kg_per_j: float
    """Operational carbon per joule of a device [kg]."""

    @staticmethod
    def of(*, price_per_hour: float | None, grid: str, pue: float) -> Bills:
        """Build the table; a price of ``None`` takes the listed price of each node type.

        Raises:
            SpecError: there is no such grid, or a number is out of range.
        """

        def upkeep(machine: ClusterNode) -> Upkeep:
            own = machine.price_per_hour if price_per_hour is None else price_per_hour
            return Upkeep(device=machine.device, price_per_hour=own, grid=grid, pue=pue)

        held = {name: upkeep(machine) for name, machine in MACHINES.items()}
        return Bills(
            watts={n: device_of(one.device).power_limit_w or np.nan for n, one in MACHINES.items()},
            dollars={name: float(one.dollars(_ONE)[0]) for name, one in held.items()},
            made_kg={name: float(one.embodied_share_kg(_ONE)[0]) for name, one in held.items()},
            # The grid and the PUE are the same for all machines, so any machine will do.
            kg_per_j=float(held["zionex"].operational_kg(_ONE)[0]),
        )

    def per_sample(self, batch: Batch, held_s: Floats, drawn_s: Floats) -> dict[str, Floats]:
        """Return the energy, cost and carbon of a sample, (n,) each.

        Args:
            batch: designs, with their ``system``.
            held_s: device-seconds per sample, (n,).
            drawn_s: equivalent device-seconds at full power per sample, (n,).
        """
        energy_j = drawn_s * batch.lookup("system", self.watts)
        made_kg = held_s * batch.lookup("system", self.made_kg)
        return {
            "energy_per_sample": energy_j,
            "cost_per_sample": held_s * batch.lookup("system", self.dollars),
            "carbon_per_sample": energy_j * self.kg_per_j + made_kg,
        }
