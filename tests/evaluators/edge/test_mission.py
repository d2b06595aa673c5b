"""Flights of aerial robots: the law of the safe speed, its knee, and the mass of computers."""

import numpy as np
import pytest

from dse.core.batch import Batch
from dse.errors import SpecError
from dse_evaluators.edge.mission import Mission, Motion

ROBOT = {
    "latency": 0.01,
    "energy": 0.01,
    "sensing_range": 3.0,
    "mass": 1.0,
    "thrust": 2 * 9.80665,
    "heatsink": 0.01,
    "hover_power": 100.0,
    "battery": 36000.0,
    "distance": 500.0,
}


def fly(**inputs):
    made = Mission(**{name: one for name, one in ROBOT.items() if name not in inputs})
    return made.evaluate(Batch.of([{"sensor_rate": 60.0} | inputs]))


@pytest.mark.parametrize(
    ("rate", "speed"),
    [
        (1, 2.649),  # 10 (sqrt(1 + 0.6) - 1), by hand
        (10, 6.810),  # 10 (sqrt(0.01 + 0.6) - 0.1)
        (60, 7.581),  # 10 (sqrt(1 / 3600 + 0.6) - 1 / 60)
    ],
)
def test_the_safe_speed_is_that_of_the_law_worked_by_hand(rate, speed):
    motion = Motion(acceleration=np.array([10.0]), sensing_range=np.array([3.0]))
    assert motion.safe_speed(np.array([1 / rate]))[0] == pytest.approx(speed, abs=0.0005)


def test_a_robot_at_its_safe_speed_stops_exactly_at_the_obstacle():
    periods = np.array([1e-6, 0.1, 5.0, 1e5])
    motion = Motion(acceleration=np.full(4, 4.0), sensing_range=np.full(4, 7.0))
    speed = motion.safe_speed(periods)
    assert speed * periods + speed**2 / 8.0 == pytest.approx(np.full(4, 7.0), rel=1e-12)


def test_the_knee_is_where_its_share_of_the_limit_is_reached():
    motion = Motion(acceleration=np.array([4.0]), sensing_range=np.array([7.0]))
    speed = motion.safe_speed(motion.period_of(0.98))
    assert speed == pytest.approx(0.98 * motion.speed_limit)


@pytest.mark.parametrize(
    ("inputs", "rate", "bottleneck"),
    [
        ({"sensor_rate": 30.0}, 30.0, 0),
        ({"latency": 0.1}, 10.0, 1),
        ({"control_rate": 20.0}, 20.0, 2),
    ],
)
def test_the_slowest_stage_sets_the_rate(inputs, rate, bottleneck):
    found = fly(**inputs).columns
    assert found["action_rate"][0] == pytest.approx(rate)
    assert found["bottleneck"][0] == bottleneck


def test_missions_are_those_of_a_sum_by_hand():
    found = fly(sensor_rate=50.0, board_mass=0.2, other_power=5.0, success=0.8).columns
    mass = 1.0 + 0.2 + 0.01 * 1.0  # 0.01 J in 0.01 s is 1 W
    acceleration = 2 * 9.80665 / mass - 9.80665
    speed = acceleration * ((0.02**2 + 6.0 / acceleration) ** 0.5 - 0.02)
    power = 100.0 * mass**1.5 + 0.01 * 50.0 + 5.0
    assert found["payload"][0] == pytest.approx(0.21)
    assert found["missions"][0] == pytest.approx(0.8 * 36000.0 * speed / (power * 500.0))


def test_a_robot_that_is_too_heavy_to_hover_is_infeasible():
    failures = fly(board_mass=1.5).failures
    assert failures[0].kind == "infeasible"
    assert failures[0].reason == "it cannot hover: its thrust is 0.797 of its weight"


def test_a_knee_beyond_the_limit_and_a_battery_without_energy_are_refused():
    with pytest.raises(SpecError, match="knee is 1"):
        Mission(knee=1.0)
    with pytest.raises(SpecError, match="battery cannot be 0"):
        Mission(battery="0 J")
