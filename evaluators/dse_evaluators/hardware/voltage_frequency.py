"""Highest clock frequency at a supply voltage, by the alpha-power law."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dse.core.values import Floats
from dse_evaluators.accelerators.technology import NOMINAL_V


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """Voltage-frequency curve of a circuit: its highest clock at a supply voltage.

    The defaults are assumptions: 1 GHz at the nominal voltage at 45 nm, a threshold of 0.3 V.
    From 0.9 to 0.7 V, delays then grow by a factor of 1.32; Stillmaker and Baas (Integration 2017)
    give 2.27 at 45 nm and 1.21 at 7 nm, for chains of inverters.

    Source:
        T. Sakurai, A. Newton: Alpha-Power Law MOSFET Model and its Applications to CMOS Inverter
        Delay, JSSC 1990, equation 10: delay is proportional to V / (V - threshold)**alpha;
        alpha 1.3.
    """

    nominal_hz: float = 1e9
    nominal_v: float = NOMINAL_V
    threshold_v: float = 0.3
    alpha: float = 1.3

    def fastest_hz(self, voltage_v: Floats, speed: Floats) -> Floats:
        """Return the highest clock in Hz at given supply voltages; 0 at or below the threshold.

        ``speed`` is the speed of the circuit relative to 45 nm.
        """
        over = np.maximum(voltage_v - self.threshold_v, 0.0)
        drive = over**self.alpha / voltage_v
        nominal = (self.nominal_v - self.threshold_v) ** self.alpha / self.nominal_v
        return self.nominal_hz * speed * drive / nominal
