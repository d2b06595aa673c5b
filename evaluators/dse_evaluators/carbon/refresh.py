"""Evaluator ``hardware.refresh``: carbon and cost per year by the server refresh period."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from dse.core.metric import Failure, Metric, Metrics
from dse.core.values import Floats
from dse_evaluators.amounts import amount
from dse_evaluators.declared_evaluator import DeclaredEvaluator
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


class Refresh(DeclaredEvaluator, reads=_READINGS, provides=_METRICS, version="1"):
    """Carbon and cost per year of a constant load on servers whose efficiency improves yearly.

    A server bought ``y`` years from now needs ``power / (1 + gain)**y`` for the load. It is
    replaced after ``refresh_period`` years, which need not be an integer; the last server is
    retired at the end of the horizon, and its purchase counts in full.

    Server data may be metrics of other evaluators.

    Args:
        embodied: embodied carbon of a server, in kg or as text with a unit.
        power: power of a working server, in W or as text with a unit.
        gain: yearly improvement of efficiency, as a share.
        horizon: in years, or text such as ``12 yr``.
        price: price of a server in dollars.
        electricity: price of electricity in dollars per kWh.
        utilization: share of time in which a server works, if the space has none.
        pue: power of the building over that of its servers, if the space has none.
        clean_hours: carbon intensity of the cleaner hours over the mean; an assumption.

    Inputs:
        provisioning: spare servers as a share of the working ones, with embodied carbon and price
            only.
        reuse: share of a new server taken from an old one.
        shifted: share of the load deferred to hours of cleaner electricity.

    Error:
        Not validated: it is a sum. Its best periods equal those of an earlier prototype.

    Example:
        options: {price: 8000, electricity: 0.1}
        parameters: {refresh_period: [3, 5, 7], grid_intensity: [0.1, 0.4], reuse: [0.0, 0.25]}

    Raises:
        SpecError: an option has an invalid value.

    Source:
        Lee et al.: Carbon Connect: An Ecosystem for Sustainable Computing, 2024, poses the
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

    def __post_init__(self) -> None:
        self._embodied_kg = amount("embodied", self.embodied, "kg")
        self._power_w = amount("power", self.power, "W")
        self._horizon_yr = amount("horizon", self.horizon, "yr", least=1e-3)
        self._gain = amount("gain", self.gain, "")
        number(0, 1)("clean_hours", self.clean_hours)
        self.declare(
            Readings(_READINGS).otherwise(
                {
                    "utilization": self.utilization,
                    "pue": self.pue,
                    "server_embodied": self._embodied_kg,
                    "server_power": self._power_w,
                }
            )
        )

    def compute(self, inputs: Mapping[str, Floats]) -> Metrics:
        """Compute carbon and cost per year of n designs, each with its refresh period."""
        period = inputs["refresh_period"]
        possible = period > 0
        period = np.where(possible, period, self._horizon_yr)
        bought, years = self._bought(period)
        servers = 1.0 + inputs["provisioning"]
        new = servers * bought / self._horizon_yr
        kwh = _kwh(inputs) * years / self._horizon_yr
        embodied = new * inputs["server_embodied"] * (1.0 - inputs["reuse"])
        cleaner = 1.0 - inputs["shifted"] * (1.0 - self.clean_hours)
        operational = kwh * inputs["grid_intensity"] * cleaner
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
        never = Failure(kind="infeasible", reason="refresh_period must be above 0 years")
        return Metrics(
            columns=columns, failures=dict.fromkeys(np.flatnonzero(~possible).tolist(), never)
        )

    def _bought(self, period_yr: Floats) -> tuple[Floats, Floats]:
        """Return the number of server purchases within the horizon, and the energy used over it.

        The energy is in units of a year at the power of the first server; later servers need less.
        """
        bought = np.ceil(self._horizon_yr / period_yr - 1e-9)
        years = np.zeros_like(period_yr)
        for place in range(int(bought.max(initial=0.0))):
            start = np.minimum(place * period_yr, self._horizon_yr)
            end = np.minimum(start + period_yr, self._horizon_yr)
            years = years + (end - start) / (1.0 + self._gain) ** start
        return bought, years


def _kwh(inputs: Mapping[str, Floats]) -> Floats:
    """Return the kWh per year of the first server, including the overhead of the building."""
    return inputs["server_power"] / 1e3 * _YEAR_H * (inputs["utilization"] * inputs["pue"])
