"""Evaluator ``hardware.node``: scaling factors of a chip by node, voltage and clock."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf, nan

import numpy as np

from dse.core.batch import Batch
from dse.core.metric import Failure, Metric, Metrics
from dse.core.values import Floats
from dse_evaluators.accelerators.technology import NOMINAL_V
from dse_evaluators.alike import infeasible
from dse_evaluators.carbon.fabrication import carbon_kg_per_mm2
from dse_evaluators.declared_evaluator import DeclaredEvaluator
from dse_evaluators.hardware.dies import Wafer, design_dollars, wafer_dollars
from dse_evaluators.hardware.nodes import TechnologyNode, check_node, node_of
from dse_evaluators.hardware.voltage_frequency import Curve
from dse_evaluators.reading_table import CheckedInput, NumberInput, Reading

_METRICS = (
    Metric(name="logic_factor", goal="minimize"),
    Metric(name="sram_factor", goal="minimize"),
    Metric(name="area_factor", goal="minimize"),
    Metric(name="leakage", unit="W/mm2", goal="minimize"),
    Metric(name="frequency", unit="Hz", goal="maximize"),
    Metric(name="highest_frequency", unit="Hz", goal="maximize"),
    Metric(name="carbon_per_area", unit="kg/mm2", goal="minimize"),
    Metric(name="price_per_area", unit="USD/mm2", goal="minimize"),
    Metric(name="design_cost", unit="USD", goal="minimize"),
    Metric(name="extrapolated", words=("no", "yes")),
)


_ROUNDING = 1.0 + 1e-12

_INPUTS: Mapping[str, Reading] = {
    "node_nm": CheckedInput(check_node),
    "voltage": NumberInput(0, 2, "V"),
    "clock": NumberInput(-inf, inf, "Hz", default=nan),
    "clock_share": NumberInput(0, 1, default=1.0),
}


class NodeFactors(DeclaredEvaluator, reads=_INPUTS, provides=_METRICS, version="1"):
    """Factors that scale the energies and the area of a chip from a reference node.

    The evaluator reads none of the chip's parameters, so that a design space can be decomposed into
    chip parameters and node parameters. A clock faster than the voltage allows is infeasible.

    ``logic_factor`` multiplies the switching energy of logic, ``sram_factor`` that of buffers (both
    include the square of the voltage); ``leakage`` is the leakage per mm2 at the node. From 22 nm
    up, the factors are exactly those of ``accelerators.systolic`` at the node; below,
    ``extrapolated`` is set: see ``docs/technology.md``. Emissions and prices are per mm2 of wafer,
    before yield; ``design_cost`` is the one-time cost of designing one chip.

    Args:
        reference_nm: technology node of the chip's metrics, in nm.
        nominal_clock: clock at 45 nm and 0.9 V, in Hz; an assumption, as are the next two.
        threshold: threshold voltage of the transistors, in V.
        alpha: exponent of the alpha-power law.
        fab_grid: electricity grid of the fab, a name of :mod:`dse_evaluators.carbon.grids`.
        abatement: percent of the process gases that the fab destroys, 95 to 99.

    Inputs:
        clock_share: share of the fastest clock that the voltage allows, instead of ``clock``.

    Error:
        From 22 to 90 nm: agrees with ``accelerators.systolic`` at that node; below, SRAM energies
        are off by a factor of up to 3.

    Source:
        CACTI 7; Jouppi et al., 2021; Stillmaker and Baas, 2017; Sakurai and Newton, 1990; ACT,
        2022; CSET, 2020; IBS, 2018.

    Example:
        parameters: {node_nm: [7, 22, 45], voltage: [0.7, 0.9], clock_share: [1.0]}

    Raises:
        SpecError: an option has an invalid value.
    """

    reference_nm: float = 45.0
    nominal_clock: float = 1e9
    threshold: float = 0.3
    alpha: float = 1.3
    fab_grid: str = "taiwan"
    abatement: float = 97.0

    def __post_init__(self) -> None:
        self._reference = node_of(self.reference_nm)
        self._curve = Curve(
            nominal_hz=self.nominal_clock, threshold_v=self.threshold, alpha=self.alpha
        )
        carbon_kg_per_mm2(45.0, grid=self.fab_grid, abatement=self.abatement)
        super().__post_init__()

    def evaluate(self, batch: Batch) -> Metrics:
        """Compute the scaling factors of n designs; some clocks and voltages are infeasible."""
        voltage = self._readings.column("voltage", batch)
        table = self._table(batch)
        raised = voltage / NOMINAL_V
        fastest = self._curve.fastest_hz(voltage, table["speed"])
        clock = self._clock(batch, fastest)
        columns = {
            "logic_factor": table["logic"] * raised**2,
            "sram_factor": table["sram"] * raised**2,
            "area_factor": table["area"],
            "leakage": table["leakage"] * raised,
            "frequency": clock,
            "highest_frequency": fastest,
            "carbon_per_area": table["carbon"],
            "price_per_area": table["price"],
            "design_cost": table["design"],
            "extrapolated": table["extrapolated"],
        }
        return Metrics(columns=columns, failures=_failures(clock, fastest, voltage))

    def _clock(self, batch: Batch, fastest: Floats) -> Floats:
        """Return the clock in Hz: ``clock``, or else ``clock_share`` of the fastest clock."""
        own = fastest * self._readings.column("clock_share", batch)
        given = self._readings.column("clock", batch)
        return np.where(batch.absent("clock"), own, given)

    def _table(self, batch: Batch) -> dict[str, Floats]:
        """Return the factors and prices that depend on the node alone, by name, each (n,)."""
        given = self._readings.column("node_nm", batch)
        nodes, place = np.unique(given, return_inverse=True)
        rows = [self._row(node_of(float(nm))) for nm in nodes]
        names = self._row(self._reference)
        return {name: np.array([row[name] for row in rows])[place] for name in names}

    def _row(self, node: TechnologyNode) -> dict[str, float]:
        one = self._reference
        return {
            "logic": node.logic_energy / one.logic_energy,
            "sram": node.read_energy / one.read_energy,
            "area": node.area / one.area,
            "leakage": node.leakage_w_per_mm2,
            "speed": node.speed,
            "carbon": carbon_kg_per_mm2(node.nm, grid=self.fab_grid, abatement=self.abatement),
            "price": wafer_dollars(node.nm) / Wafer().usable_mm2,
            "design": design_dollars(node.nm),
            "extrapolated": float(node.extrapolated),
        }


def _failures(clock: Floats, fastest: Floats, voltage: Floats) -> dict[int, Failure]:
    """Return a fault for each design whose voltage is too low to switch, or for its clock."""
    off = ~(clock > 0.0) | (clock > fastest * _ROUNDING)
    return infeasible(off, lambda row: _reason(clock[row], fastest[row], voltage[row]))


def _reason(clock: float, fastest: float, voltage: float) -> str:
    if fastest <= 0.0:
        return f"at {voltage:.3g} V no transistor switches: it is not above the threshold"
    if not clock > 0.0:
        return f"a clock of {clock:g} Hz is not positive"
    return (
        f"at {voltage:.3g} V the fastest clock is {fastest / 1e6:.4g} MHz: "
        f"{(clock - fastest) / 1e6:.4g} MHz less than {clock / 1e6:.4g} MHz"
    )
