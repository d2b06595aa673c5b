"""The evaluator ``hardware.refresh``: how often servers are best replaced."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from dse.core.batch import Batch
from dse.core.metric import Fault, Kind, Metric, Metrics
from dse.core.values import Floats, Value
from dse_evaluators.hardware.amounts import amount
from dse_evaluators.readings import check_readings, number

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
    reads: frozenset[str] = field(
        init=False, default=frozenset({"refresh_period", "grid_intensity"})
    )
    optional: frozenset[str] = field(
        init=False,
        default=frozenset(
            {"utilization", "pue", "provisioning", "reuse", "shifted"}
            | {"server_embodied", "server_power"}
        ),
    )
    units: Mapping[str, str] = field(init=False)
    provides: Mapping[str, Metric] = field(init=False)
    kind: Kind = field(init=False, default="modelled")
    version: str = field(init=False, default="1")

    def __post_init__(self) -> None:
        self.units = {
            "refresh_period": "yr",
            "grid_intensity": "kg/kW/h",
            "server_embodied": "kg",
            "server_power": "W",
        }
        self.provides = {metric.name: metric for metric in _METRICS}
        self._embodied_kg = amount("embodied", self.embodied, "kg")
        self._power_w = amount("power", self.power, "W")
        self._horizon_yr = amount("horizon", self.horizon, "yr", least=1e-3)
        self._gain = amount("gain", self.gain, "")
        self.check_values(
            {
                "utilization": (self.utilization,),
                "pue": (self.pue,),
                "shifted": (self.clean_hours,),
            }
        )

    def check_values(self, values: Mapping[str, Sequence[Value]]) -> None:
        """Nothing, if it can be run on all of these values of its readings.

        Raises:
            SpecError: it cannot.
        """
        shares = ("utilization", "provisioning", "reuse", "shifted")
        check_readings(values, dict.fromkeys(shares, number(0, 1)) | {"pue": number(1, 9)})

    def evaluate(self, batch: Batch) -> Metrics:
        """The years of n ways to replace servers."""
        period = np.asarray(batch["refresh_period"], dtype=np.float64)
        possible = period > 0
        period = np.where(possible, period, self._horizon_yr)
        bought, years = self._bought(period)
        servers = 1.0 + self._of(batch, "provisioning", 0.0)
        new = servers * bought / self._horizon_yr
        kwh = self._kwh(batch) * years / self._horizon_yr
        made_kg = self._of(batch, "server_embodied", self._embodied_kg)
        embodied = new * made_kg * (1.0 - self._of(batch, "reuse", 0.0))
        cleaner = 1.0 - self._of(batch, "shifted", 0.0) * (1.0 - self.clean_hours)
        operational = kwh * np.asarray(batch["grid_intensity"], dtype=np.float64) * cleaner
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

    def _kwh(self, batch: Batch) -> Floats:
        """What the first server draws in a year, with its part of the building."""
        power_kw = self._of(batch, "server_power", self._power_w) / 1e3
        used = self._of(batch, "utilization", self.utilization) * self._of(batch, "pue", self.pue)
        return power_kw * _YEAR_H * used

    def _bought(self, period_yr: Floats) -> tuple[Floats, Floats]:
        """How many servers come one after the other, and years of the first one's power."""
        bought = np.ceil(self._horizon_yr / period_yr - 1e-9)
        years = np.zeros_like(period_yr)
        for place in range(int(bought.max(initial=0.0))):
            start = np.minimum(place * period_yr, self._horizon_yr)
            end = np.minimum(start + period_yr, self._horizon_yr)
            years = years + (end - start) / (1.0 + self._gain) ** start
        return bought, years

    def _of(self, batch: Batch, name: str, otherwise: float) -> Floats:
        return np.asarray(batch.get(name, otherwise), dtype=np.float64)
