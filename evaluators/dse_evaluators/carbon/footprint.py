"""Evaluator ``hardware.carbon``: embodied and operational carbon of a chip over its lifetime."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from dse.core.metric import Failure, Metric, Metrics
from dse.core.values import Floats
from dse_evaluators.alike import infeasible
from dse_evaluators.amounts import amount
from dse_evaluators.carbon.grids import grid_kg_per_j
from dse_evaluators.carbon.memories import memory_kg_per_byte
from dse_evaluators.declared_evaluator import DeclaredEvaluator
from dse_evaluators.reading_table import NumberInput, Reading, Readings

_METRICS = (
    Metric(name="carbon", unit="kg", goal="minimize"),
    Metric(name="operational", unit="kg", goal="minimize", part_of="carbon"),
    Metric(name="silicon", unit="kg", goal="minimize", part_of="carbon"),
    Metric(name="memory", unit="kg", goal="minimize", part_of="carbon"),
    Metric(name="storage", unit="kg", goal="minimize", part_of="carbon"),
    Metric(name="runs", goal="maximize"),
    Metric(name="carbon_per_run", unit="kg", goal="minimize"),
    Metric(name="bottleneck", words=("operation", "making")),
)

_J_PER_KWH = 3.6e6

_READINGS: Mapping[str, Reading] = {
    **{
        name: NumberInput(0, 1e30, unit)
        for name, unit in {"energy": "J", "latency": "s", "embodied": "kg"}.items()
    },
    "lifetime": NumberInput(0, 1e12, "s", default=0.0),
    "utilization": NumberInput(0, 1, default=0.5),
    "grid_intensity": NumberInput(0, 1e12, "kg/kW/h", default=0.0),
}


class Footprint(DeclaredEvaluator, reads=_READINGS, provides=_METRICS, version="1"):
    """Carbon footprint of a chip over its lifetime, from the metrics of other evaluators.

    ``bind`` in the study maps the inputs to metrics of other evaluators.

    Args:
        rate: required runs per second, the same for all designs; a chip that is too slow is
            infeasible. Without it, a chip runs for ``utilization`` of its lifetime, and a faster
            one performs more runs.
        utilization: share of its lifetime in which the chip works, if there is no ``rate``.
        lifetime: seconds, or text with a unit such as ``3 yr``.
        grid: electricity grid, a name of :mod:`.grids`.
        grid_intensity: emissions of electricity in kg/kWh, which replace those of ``grid``.
        pue: power usage effectiveness: power of the building over that of its computers.
        idle_power: power of the idle chip in W, or text with a unit.
        dram: a kind of :mod:`.memories`.
        dram_capacity: in bytes, or text with a unit.
        flash: a kind of :mod:`.memories`.
        flash_capacity: in bytes, or text with a unit.

    Inputs:
        energy, latency: of one run: ``chip.energy`` and ``chip.latency`` in most studies.
        embodied: carbon of the packaged die: ``die.embodied``.
        lifetime, utilization, grid_intensity: by default those of the options.

    Error:
        Agrees with ACT's own tests.

    Example:
        options: {rate: 100 1/s, dram_capacity: 1 GB}
        parameters:
            {energy: [0.001, 0.002], latency: [0.001], embodied: [2.0], lifetime: [100000000]}

    Raises:
        SpecError: an option has an invalid value.

    Source:
        Gupta et al., ACT, ISCA 2022, equations 1 to 8.
    """

    rate: float | str | None = None
    utilization: float = 0.5
    lifetime: float | str = "3 yr"
    grid: str = "world"
    grid_intensity: float | str | None = None
    pue: float = 1.0
    idle_power: float | str = 0.0
    dram: str = "lpddr4"
    dram_capacity: float | str = 0.0
    flash: str = "nand_10nm"
    flash_capacity: float | str = 0.0

    def __post_init__(self) -> None:
        self._rate_hz = None if self.rate is None else amount("rate", self.rate, "1/s")
        self._lifetime_s = amount("lifetime", self.lifetime, "s")
        self._kg_per_j = (
            grid_kg_per_j(self.grid)
            if self.grid_intensity is None
            else amount("grid_intensity", self.grid_intensity, "kg/kW/h") / _J_PER_KWH
        )
        self._idle_w = amount("idle_power", self.idle_power, "W")
        self._pue = amount("pue", self.pue, "", least=1.0)
        self._memory_kg = self._memory_footprint("dram")
        self._storage_kg = self._memory_footprint("flash")
        self.declare(
            Readings(_READINGS).otherwise(
                {
                    "lifetime": self._lifetime_s,
                    "utilization": self.utilization,
                    "grid_intensity": self._kg_per_j * _J_PER_KWH,
                }
            )
        )

    def compute(self, inputs: Mapping[str, Floats]) -> Metrics:
        """Compute the carbon footprints of n designs, with a fault for each infeasible one."""
        life_s = inputs["lifetime"]
        kg_per_j = inputs["grid_intensity"] / _J_PER_KWH
        runs, busy = self._work(inputs)
        joules = runs * inputs["energy"]
        idle_j = self._idle_w * np.maximum(life_s - busy * life_s, 0.0)
        parts = {
            "operational": (joules + idle_j) * self._pue * kg_per_j,
            "silicon": inputs["embodied"],
            "memory": np.full_like(life_s, self._memory_kg),
            "storage": np.full_like(life_s, self._storage_kg),
        }
        carbon = parts["operational"] + parts["silicon"] + parts["memory"] + parts["storage"]
        columns = {
            "carbon": carbon,
            **parts,
            "runs": runs,
            "carbon_per_run": carbon / np.where(runs > 0, runs, 1.0),
            "bottleneck": (parts["operational"] < carbon / 2).astype(np.float64),
        }
        return Metrics(columns=columns, failures=self._failures(runs, busy))

    def _work(self, inputs: Mapping[str, Floats]) -> tuple[Floats, Floats]:
        """Return a chip's runs in its lifetime, and the fraction of the lifetime that they take."""
        life_s, latency_s, busy = inputs["lifetime"], inputs["latency"], inputs["utilization"]
        if self._rate_hz is not None:
            return self._rate_hz * life_s, self._rate_hz * latency_s
        return busy * life_s / latency_s, busy

    def _memory_footprint(self, part: str) -> float:
        capacity = amount(f"{part}_capacity", getattr(self, f"{part}_capacity"), "B")
        return capacity * memory_kg_per_byte(getattr(self, part))

    def _failures(self, runs: Floats, busy: Floats) -> dict[int, Failure]:
        over = infeasible(
            np.asarray(busy > 1.0),
            lambda row: (
                f"the rate is {busy[row]:.4g} times its capacity: "
                f"{(busy[row] - 1.0):.4g} s short in each second"
            ),
        )
        return over | infeasible(
            ~(runs > 0), lambda _: "it never runs: its lifetime, utilization or rate is 0"
        )
