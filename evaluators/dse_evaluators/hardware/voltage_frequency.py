"""The clock that a voltage allows: the alpha-power law."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dse.core.values import Floats
from dse_evaluators.accelerators.technology import NOMINAL_V


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """Speed of a circuit at each voltage.

    The defaults are assumptions: 1 GHz at the nominal voltage at 45 nm, a threshold of 0.3 V.
    From 0.9 to 0.7 V delays then grow by 1.32; Stillmaker and Baas (Integration 2017) have 2.27 at
    45 nm and 1.21 at 7 nm, for chains of inverters.

    Source:
        T. Sakurai, A. Newton: Alpha-Power Law MOSFET Model and its Applications to CMOS Inverter
        Delay, JSSC 1990, equation 10: delay goes with V / (V - threshold)**alpha; alpha 1.3.
    """

    nominal_hz: float = 1e9
    nominal_v: float = NOMINAL_V
    threshold_v: float = 0.3
    alpha: float = 1.3

    def fastest_hz(self, voltage_v: Floats, speed: Floats) -> Floats:
        """The highest clock at these voltages, of circuits so many times as fast; else 0."""
        over = np.maximum(voltage_v - self.threshold_v, 0.0)
        drive = over**self.alpha / voltage_v
        nominal = (self.nominal_v - self.threshold_v) ** self.alpha / self.nominal_v
        return self.nominal_hz * speed * drive / nominal
