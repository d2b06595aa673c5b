"""Cost of the hours of a cluster's devices: dollars for renting them, and carbon."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dse.core.values import Floats
from dse.errors import SpecError, nearest
from dse_evaluators.carbon.grids import grid_kg_per_j
from dse_evaluators.readings import number

_HOUR_S = 3600.0

# US dollars for one device and hour, on demand and without discount: a snapshot, recalled from the
# vendors' public lists and not looked up again; a study that is about money states its own.
PRICES_PER_HOUR: Mapping[str, float] = {
    "v100-sxm2": 3.90,  # AWS p3dn.24xlarge, 31.21 for eight
    "a100-sxm-40gb": 4.10,  # AWS p4d.24xlarge, 32.77 for eight
    "a100-sxm-80gb": 5.12,  # AWS p4de.24xlarge, 40.97 for eight
    "h100-sxm": 12.29,  # AWS p5.48xlarge before June 2025, 98.32 for eight
    "tpu-v4": 3.22,  # Google Cloud, a chip
    "tpu-v5e": 1.20,  # Google Cloud, a chip
    "tpu-v5p": 4.20,  # Google Cloud, a chip
}

EMBODIED_KG = 150.0 + 2500.0 / 8.0
"""Making a device and its share of a server that holds eight.

Luccioni, Viguier, Ligozat: Estimating the Carbon Footprint of BLOOM, 2022, section 4.1: 150 kg for
a GPU, 2,500 kg for a server without them. Both are of A100; that of others is their guess too.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Upkeep:
    """Cost of an hour of one device, and emissions of a joule.

    Args:
        device: a name of ``devices.csv``.
        price_per_hour: in US dollars; without it the device's in :data:`PRICES_PER_HOUR`.
        grid: a name of :data:`~dse_evaluators.carbon.grids.GRIDS`.
        pue: power of the whole building over that of its computers.
        lifetime_s: over which a device's making is spread, as if it never stood idle.
        embodied_kg: of making a device, with its share of the server.

    Raises:
        SpecError: nobody told the price, there is no such grid, or a number is out of range.
    """

    device: str
    price_per_hour: float | None = None
    grid: str = "usa"
    pue: float = 1.1
    lifetime_s: float = 5 * 365.25 * 86_400
    embodied_kg: float = EMBODIED_KG

    def __post_init__(self) -> None:
        for name, least in (("pue", 1.0), ("lifetime_s", 1.0), ("embodied_kg", 0.0)):
            number(least, 1e12)(name, getattr(self, name))
        if self.price_per_hour is not None:
            number(0, 1e6)("price_per_hour", self.price_per_hour)
        grid_kg_per_j(self.grid)

    @property
    def priced(self) -> bool:
        """True if the price of an hour is known."""
        return self.price_per_hour is not None or self.device in PRICES_PER_HOUR

    def dollars(self, device_seconds: Floats) -> Floats:
        """Return the dollars of renting a device for that many seconds, (n,).

        Raises:
            SpecError: nobody told the price.
        """
        price = self.price_per_hour
        if price is None:
            if self.device not in PRICES_PER_HOUR:
                hint = f"state price_per_hour; listed: {nearest(self.device, PRICES_PER_HOUR)}"
                raise SpecError(f"{self.device} has no listed price", hint=hint)
            price = PRICES_PER_HOUR[self.device]
        return device_seconds * (price / _HOUR_S)

    def operational_kg(self, energy_j: Floats) -> Floats:
        """Return the grid's emissions [kg] for the devices' energy and the building's, (n,)."""
        return energy_j * (self.pue * grid_kg_per_j(self.grid))

    def embodied_share_kg(self, device_seconds: Floats) -> Floats:
        """The share of the devices' making that falls on the time that they are held, (n,)."""
        return device_seconds * (self.embodied_kg / self.lifetime_s)
