"""The evaluator ``hardware.refresh``: how often servers are best replaced."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from dse.core.batch import Batch
from dse.core.metric import Fault, Kind, Metric, Metrics
from dse.core.values import Floats, Value
from dse_evaluators.hardware.amounts import amount
from dse_evaluators.reading_table import NumberInput, Reading, Readings
from dse_evaluators.readings import number

_METRICS = (
    Metric(name="carbon", unit="kg/yr", goal="minimize"),
    Metric(name="embodied", unit="kg/yr", goal="minimize", part_of="carbon"),
    Metric(name="operational", unit="kg/yr", goal="minimize", part_of="carbon"),
    Metric(name="cost", unit="USD/yr", goal="minimize"),
    Metric(name="purchase_cost", unit="USD/yr", goal="minimize", part_of="cost"),
    Metric(name="electricity_cost", unit="USD/yr", goal="minimize", part_of="cost"),
    Metric(name="purchases", goal="minimize"),
    Metric(name="spare_capacity", goal="maximize"),
    Metric(name="bottleneck", words=("operation", "making")),
)

_SHARE, _AMOUNT = NumberInput(0, 1, default=0.0), NumberInput(0, 1e12)
_READINGS: Mapping[str, Reading] = {
    "refresh_period": _AMOUNT._replace(unit="yr"),
    "grid_intensity": _AMOUNT._replace(unit="kg/kW/h"),
    **dict.fromkeys(("utilization", "provisioning", "reuse", "shifted"), _SHARE),
    "pue": NumberInput(1, 9, default=1.0),
    "server_embodied": _AMOUNT._replace(unit="kg", default=0.0),
    "server_power": _AMOUNT._replace(unit="W", default=0.0),
}
_YEAR_H = 8766.0


@dataclass(kw_only=True, eq=False)
class Refresh:
    """Carbon and cost for each year of work that stays the same, with servers that get better.

    A server that is bought ``y`` years from now does the work for ``power / (1 + gain)**y``. It
    serves for ``refresh_period`` years, whole years or parts of one; the last one is let go when
    the horizon is over, and counts in full.

    Reads ``refresh_period`` (yr) and ``grid_intensity`` (kg/kWh); where the space has them
    ``utilization``, ``pue``, ``provisioning`` (servers beyond those that work, a share of them,
    that emit only while they are made), ``reuse`` (the share of a new server that is taken from an
    old one), ``shifted`` (the share of the work that waits for cleaner hours), and of the server
    ``server_embodied`` and ``server_power``, which may be what other evaluators tell of a chip.

    Args:
        embodied: of a server, in kg.
        power: of a server that works, in W.
        gain: by how much more efficient servers get each year, a share.
        horizon: such as ``12 yr``.
        price: of a server in dollars.
        electricity: dollars for a kWh.
        utilization: the share of the time that it works, where the space has none.
        pue: power of the building over that of its servers, where the space has none.
        clean_hours: intensity of the cleaner hours over the mean one; an assumption.

    Raises:
        SpecError: an option has a value that it does not take.

    Source:
        Lee et al.: Carbon Connect: An Ecosystem for Sustainable Computing, 2024, names the
        question; the sum is that of embodied and operational carbon over a horizon.
    """

    embodied: float | str = "1200 kg"
    power: float | str = "350 W"
    gain: float = 0.15
    horizon: float | str = "12 yr"
    price: float = 0.0
    electricity: float = 0.0
    utilization: float = 0.6
    pue: float = 1.0
    clean_hours: float = 0.5
    reads: frozenset[str] = field(init=False)
    optional: frozenset[str] = field(init=False)
    units: Mapping[str, str] = field(init=False)
    provides: Mapping[str, Metric] = field(init=False)
    kind: Kind = field(init=False, default="modelled")
    pure = True
    version: str = field(init=False, default="1")

    def __post_init__(self) -> None:
        self.provides = {metric.name: metric for metric in _METRICS}
        self._embodied_kg = amount("embodied", self.embodied, "kg")
        self._power_w = amount("power", self.power, "W")
        self._horizon_yr = amount("horizon", self.horizon, "yr", least=1e-3)
        self._gain = amount("gain", self.gain, "")
        number(0, 1)("clean_hours", self.clean_hours)
        self._readings = Readings(_READINGS).otherwise(
            {
                "utilization": self.utilization,
                "pue": self.pue,
                "server_embodied": self._embodied_kg,
                "server_power": self._power_w,
            }
        )
        self.reads, self.optional, self.units = self._readings.declared

    def check_values(self, values: Mapping[str, Sequence[Value]]) -> None:
        self._readings.check(values)

    def evaluate(self, batch: Batch) -> Metrics:
        """The years of n ways to replace servers."""
        told = self._readings.columns(batch)
        period = told["refresh_period"]
        possible = period > 0
        period = np.where(possible, period, self._horizon_yr)
        bought, years = self._bought(period)
        servers = 1.0 + told["provisioning"]
        new = servers * bought / self._horizon_yr
        kwh = _kwh(told) * years / self._horizon_yr
        embodied = new * told["server_embodied"] * (1.0 - told["reuse"])
        cleaner = 1.0 - told["shifted"] * (1.0 - self.clean_hours)
        operational = kwh * told["grid_intensity"] * cleaner
        columns = {
            "carbon": embodied + operational,
            "embodied": embodied,
            "operational": operational,
            "cost": new * self.price + kwh * self.electricity,
            "purchase_cost": new * self.price,
            "electricity_cost": kwh * self.electricity,
            "purchases": bought,
            "spare_capacity": servers - 1.0,
            "bottleneck": (operational < embodied).astype(np.float64),
        }
        never = Fault(kind="infeasible", reason="a server serves for more than 0 years")
        return Metrics(
            columns=columns, faults=dict.fromkeys(np.flatnonzero(~possible).tolist(), never)
        )

    def _bought(self, period_yr: Floats) -> tuple[Floats, Floats]:
        """Return how many servers are bought in turn, and years of the first one's power."""
        bought = np.ceil(self._horizon_yr / period_yr - 1e-9)
        years = np.zeros_like(period_yr)
        for place in range(int(bought.max(initial=0.0))):
            start = np.minimum(place * period_yr, self._horizon_yr)
            end = np.minimum(start + period_yr, self._horizon_yr)
            years = years + (end - start) / (1.0 + self._gain) ** start
        return bought, years


def _kwh(told: Mapping[str, Floats]) -> Floats:
    """Return the kWh that the first server draws in a year, with its part of the building."""
    return told["server_power"] / 1e3 * _YEAR_H * (told["utilization"] * told["pue"])
