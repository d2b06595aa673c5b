"""The clock that a voltage allows."""

from __future__ import annotations

import numpy as np
import pytest

from dse_evaluators.hardware.voltage_frequency import Curve

# Delay of a fan-out of four at a voltage in V: a3 V**3 + a2 V**2 + a1 V + a0. A. Stillmaker,
# B. Baas, Integration 2017, table of delay polynomials.
DELAYS = {45: (-501.6, 1567.0, -1619.0, 566.1), 7: (-28.58, 76.6, -70.26, 24.69)}


def slower(nm, voltage):
    """Delay at a voltage over that at 0.9 V, by the polynomials."""
    return np.polyval(DELAYS[nm], voltage) / np.polyval(DELAYS[nm], 0.9)


def ours(voltage):
    """The same by the curve."""
    at = Curve().fastest_hz(np.array([voltage, 0.9]), np.ones(1))
    return at[1] / at[0]


def test_the_nominal_voltage_gives_the_nominal_clock():
    assert Curve(nominal_hz=2e9).fastest_hz(np.array([0.9]), np.ones(1)) == pytest.approx(2e9)


@pytest.mark.parametrize("voltage", [0.6, 0.7, 0.8])
def test_the_assumed_curve_lies_between_those_simulated_for_45_and_for_7_nm(voltage):
    assert slower(7, voltage) < ours(voltage) < slower(45, voltage)


def test_at_or_below_the_threshold_there_is_no_clock():
    assert not Curve().fastest_hz(np.array([0.1, 0.3]), np.ones(1)).any()


def test_a_faster_circuit_has_the_faster_clock():
    assert Curve().fastest_hz(np.array([0.7]), np.array([2.0])) == pytest.approx(
        2.0 * Curve().fastest_hz(np.array([0.7]), np.ones(1))
    )
