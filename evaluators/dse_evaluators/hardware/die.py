"""Evaluator ``hardware.die``: yield, cost and embodied carbon of a die by its area."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf

import numpy as np

from dse.core.batch import Batch
from dse.core.metric import Failure, Metric, Metrics
from dse.core.values import Floats, Mask, Value
from dse.errors import SpecError
from dse_evaluators.alike import infeasible
from dse_evaluators.amounts import amount
from dse_evaluators.carbon.fabrication import carbon_kg_per_mm2, is_in_table
from dse_evaluators.declared_evaluator import DeclaredEvaluator
from dse_evaluators.hardware.dies import (
    DEFECTS_PER_MM2,
    WAFER_DOLLARS,
    WAFER_MM,
    YIELDS,
    Wafer,
    wafer_dollars,
)
from dse_evaluators.reading_table import CheckedInput, NumberInput, Reading, Readings
from dse_evaluators.readings import look_up_row, number

_METRICS = (
    Metric(name="yield_share", goal="maximize"),
    Metric(name="dies_per_wafer", goal="maximize"),
    Metric(name="cost", unit="USD", goal="minimize"),
    Metric(name="embodied", unit="kg", goal="minimize"),
    Metric(name="die_embodied", unit="kg", goal="minimize", part_of="embodied"),
    Metric(name="packaging_embodied", unit="kg", goal="minimize", part_of="embodied"),
    Metric(name="extrapolated", words=("no", "yes")),
)

_INPUTS: Mapping[str, Reading] = {"area": NumberInput(0, 1e6, "mm2")}

PACKAGE_KG = 0.15
"""Embodied carbon of a package: ACT, ISCA 2022."""


class Die(DeclaredEvaluator, reads=_INPUTS, provides=_METRICS, version="1"):
    """Yield, cost and embodied carbon of a die; reads its ``area`` [mm2] (often ``chip.area``).

    ``cost`` is the wafer's price divided by the number of its working dies, without test and
    package. ``embodied`` is the fab's emissions for the area of a die divided by the yield (area
    lost at the wafer's edge is excluded, as in ACT), and those of the packages. ``extrapolated`` is
    1 if the node is not in the table of wafer prices, so that its price is interpolated, or is
    above 28 nm, where emissions are assumed to be those of 28 nm.

    Args:
        node_nm: technology node in nm; if absent, read from the design.
        law: yield law: ``poisson``, ``murphy``, ``negative-binomial`` or ``seeds``.
        clusters: clustering parameter of the negative binomial law, usually 3 for logic; the other
            laws ignore it.
        defects: defect density in 1/mm2, or text such as ``0.1 1/cm2``.
        wafer_price: in dollars; if absent, that of the table.
        wafer_mm: diameter of the wafer in mm.
        grid: electricity grid of the fab, a name of :mod:`dse_evaluators.carbon.grids`.
        abatement: percent of the process gases that the fab destroys, 95 to 99.
        packages: number of packages per die.

    Limits:
        Prices are an estimate of 2020.

    Error:
        Agrees with the yields that AnandTech derived for TSMC's 5 nm, and with ACT's own test.

    Source:
        Murphy, 1964; Seeds, 1967; Stapper, 1983; de Vries, 2005; CSET, 2020; ACT, 2022.

    Example:
        parameters: {area: [50, 100, 400], node_nm: [7, 16, 28]}

    Raises:
        SpecError: an option has an invalid value.
    """

    node_nm: float | None = None
    law: str = "negative-binomial"
    clusters: float = 3.0
    defects: float | str = DEFECTS_PER_MM2
    wafer_price: float | None = None
    wafer_mm: float = WAFER_MM
    grid: str = "taiwan"
    abatement: float = 97.0
    packages: float = 1.0

    def __post_init__(self) -> None:
        self._law = look_up_row("law", self.law, YIELDS)
        for name in ("clusters", "wafer_mm"):
            if not getattr(self, name) > 0:
                raise SpecError(f"{name} is {getattr(self, name):g}, not positive")
        self._defects = amount("defects", self.defects, "1/mm2")
        carbon_kg_per_mm2(self.node_nm or 28.0, grid=self.grid, abatement=self.abatement)
        self.declare(Readings.of({**_INPUTS, "node_nm": CheckedInput(self._check_node)}, self))

    def evaluate(self, batch: Batch) -> Metrics:
        """Compute yield, cost and carbon of n designs; too large a die is infeasible."""
        area = self._readings.column("area", batch)
        price, carbon, extrapolated = self._of_nodes(self._readings.column("node_nm", batch))
        possible = area > 0
        area = np.where(possible, area, 1.0)
        working = self._law(area * self._defects, self.clusters)
        dies = Wafer(diameter_mm=self.wafer_mm).dies(area)
        good = working * np.maximum(dies, 1.0)
        die_kg, package_kg = (
            area * carbon / working,
            np.full(len(batch), PACKAGE_KG * self.packages),
        )
        columns = {
            "yield_share": working,
            "dies_per_wafer": dies,
            "cost": price / good,
            "embodied": die_kg + package_kg,
            "die_embodied": die_kg,
            "packaging_embodied": package_kg,
            "extrapolated": extrapolated,
        }
        return Metrics(columns=columns, failures=_failures(area, possible, dies, self.wafer_mm))

    def _of_nodes(self, node_nm: Floats) -> tuple[Floats, Floats, Floats]:
        """Return wafer price, emissions per mm2 and whether either is extrapolated, each (n,)."""
        nodes, place = np.unique(node_nm, return_inverse=True)
        table = np.array([self._of_node(float(nm)) for nm in nodes]).reshape(-1, 3)[place]
        return table[:, 0], table[:, 1], table[:, 2]

    def _check_node(self, name: str, value: Value) -> None:
        number(-inf, inf, unit="nm")(name, value)
        self._of_node(float(value))

    def _of_node(self, nm: float) -> tuple[float, float, float]:
        price = wafer_dollars(nm) if self.wafer_price is None else self.wafer_price
        carbon = carbon_kg_per_mm2(nm, grid=self.grid, abatement=self.abatement)
        off = not is_in_table(nm) or (self.wafer_price is None and nm not in WAFER_DOLLARS)
        return price, carbon, float(off)


def _failures(area: Floats, possible: Mask, dies: Floats, wafer_mm: float) -> dict[int, Failure]:
    whole = f"fits on a wafer of {wafer_mm:g} mm"
    broken = infeasible(dies < 1, lambda row: f"no die of {area[row]:.6g} mm2 {whole}")
    return broken | infeasible(~possible, lambda _: "the area of a die must be above 0 mm2")
