"""Missions under bit flips: flips of the state cost successes, and detectors recover them."""

from __future__ import annotations

import numpy as np
import pytest

from dse.core.batch import Batch
from dse.errors import DseError
from dse_evaluators.faults.anomaly_detectors import fit_monitor
from dse_evaluators.faults.faulty_mission import FaultyMission
from dse_evaluators.faults.missions import Flip, fly

DESIGNS = [
    {"detector": "none"},
    {"detector": "gaussian", "threshold": 6},
    {"detector": "autoencoder", "threshold": 4},
    {"detector": "none", "bits": "mantissa"},
]


@pytest.fixture(scope="module")
def found():
    return FaultyMission(missions=400).evaluate(Batch.of(DESIGNS)).columns


def test_flips_of_exponents_cost_missions_and_those_of_mantissas_hardly_any(found):
    lost = found["success_without_faults"] - found["success"]
    assert lost[0] >= 0.05
    assert lost[3] < 0.02


@pytest.mark.parametrize("detector", [1, 2])
def test_detectors_recover_most_lost_missions_with_few_false_alarms(found, detector):
    lost = found["success_without_faults"] - found["success"]
    assert lost[detector] < lost[0] / 2
    assert found["false_alarms"][detector] < 0.01


def test_no_detector_raises_no_alarm_and_costs_nothing(found):
    assert found["detected"][0] == found["false_alarms"][0] == found["monitor_operations"][0] == 0


def test_equal_seeds_give_equal_missions_and_others_differ():
    batch = Batch.of([{"seed": 3}, {"seed": 3}, {"seed": 4}])
    times = FaultyMission(missions=50).evaluate(batch).columns["flight_time"]
    assert times[0] == times[1] != times[2]


def test_a_flip_that_nothing_reads_changes_nothing():
    late = Flip(
        stage="control",
        steps=np.full(30, 10_000),
        words=np.zeros(30, dtype=np.int64),
        masks=np.full(30, 1 << 30, dtype=np.uint32),
    )
    np.testing.assert_array_equal(fly(1, 30, late, None).time_s, fly(1, 30, None, None).time_s)


def test_states_that_are_not_numbers_are_anomalies():
    seen = {"control": np.random.default_rng(0).normal(size=(100, 4))}
    odd = np.array([[np.nan, 0, 0, 0], [0, 0, 0, 0]])
    for kind in ("gaussian", "autoencoder"):
        monitor = fit_monitor(kind, seen, ["control"], 6.0, 2)
        assert monitor is not None
        assert monitor("control", odd).tolist() == [True, False]


@pytest.mark.parametrize(
    ("options", "mend"),
    [({"missions": 3}, "missions"), ({"detector": "gausian"}, "did you mean 'gaussian'")],
)
def test_mistake_names_the_mend(options, mend):
    with pytest.raises(DseError) as caught:
        FaultyMission(**options)
    assert mend in f"{caught.value} {caught.value.hint}"
