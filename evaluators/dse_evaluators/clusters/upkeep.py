"""Rental cost and carbon emissions of a cluster's devices."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dse.core.values import Floats
from dse.errors import SpecError
from dse_evaluators.carbon.grids import grid_kg_per_j
from dse_evaluators.csv_files.csv_records import read_rows
from dse_evaluators.readings import number

_HOUR_S = 3600.0

PRICES_PER_HOUR: Mapping[str, float] = {
    row["device"]: float(row["usd_per_hour"])
    for row in read_rows(Path(__file__).with_name("prices.csv"))
}
"""US dollars per device-hour, on demand and without discount; the table has product and date."""

EMBODIED_KG = 150.0 + 2500.0 / 8.0
"""Embodied carbon [kg] of a device, with its share of a server that holds eight.

Luccioni, Viguier, Ligozat: Estimating the Carbon Footprint of BLOOM, 2022, section 4.1: 150 kg for
a GPU, 2,500 kg for a server without GPUs. Both are for the A100, and are assumed of other devices.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Upkeep:
    """Rental price of a device, and carbon emissions of its energy and manufacture.

    Args:
        device: a name of ``devices.csv``.
        system: name of the device's cluster, for messages; empty if none is named.
        price_per_hour: US dollars per device; by default the price in :data:`PRICES_PER_HOUR`.
        grid: a name of :data:`~dse_evaluators.carbon.grids.GRIDS`.
        pue: power usage effectiveness: power of the building over that of its computers.
        lifetime_s: seconds over which the embodied carbon is spread, without idle time.
        embodied_kg: carbon [kg] of making a device, with its share of the server.

    Raises:
        SpecError: the grid is unknown, or a number is out of range.
    """

    device: str
    system: str = ""
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
        """Whether the hourly price of the device is known."""
        return self.price_per_hour is not None or self.device in PRICES_PER_HOUR

    @property
    def lacks_price(self) -> tuple[str, str]:
        """Error message for a device without a price, with an example of ``price_per_hour``."""
        name = self.system or self.device
        reason = f"no price is known for {name}"
        return reason, f"price_per_hour: {{{name}: 4.50}}, in dollars per device"

    def dollars(self, device_seconds: Floats) -> Floats:
        """Return the rental cost of ``device_seconds`` in US dollars, (n,).

        Raises:
            SpecError: the device has no listed price, and ``price_per_hour`` is not given.
        """
        price = self.price_per_hour
        if price is None:
            if self.device not in PRICES_PER_HOUR:
                problem, hint = self.lacks_price
                raise SpecError(problem, hint=hint)
            price = PRICES_PER_HOUR[self.device]
        return device_seconds * (price / _HOUR_S)

    def operational_kg(self, energy_j: Floats) -> Floats:
        """Return the operational carbon [kg] of the energy of devices, including the PUE, (n,)."""
        return energy_j * (self.pue * grid_kg_per_j(self.grid))

    def embodied_share_kg(self, device_seconds: Floats) -> Floats:
        """Return the embodied carbon [kg] that falls on ``device_seconds`` of use, (n,)."""
        return device_seconds * (self.embodied_kg / self.lifetime_s)


def price_among(prices: object, *names: str) -> float | None:
    """Return the hourly price that an option ``price_per_hour`` states, or ``None``.

    Args:
        prices: a price of every device, a mapping from devices or systems to prices, or ``None``.
        names: the names of the system, if any, and of the device; the first one with a price wins.

    Raises:
        SpecError: a price is not a number of dollars.
    """
    found: Any = prices
    if isinstance(prices, Mapping):
        found = next((prices[name] for name in names if name in prices), None)
    if found is None:
        return None
    number(0, 1e6)("price_per_hour", found)
    return float(found)
