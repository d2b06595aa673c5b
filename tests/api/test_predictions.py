"""A study predicts the metrics of designs by the surrogate of its optimizer."""

import numpy as np
import pytest

from dse import Metric, Study, evaluator
from dse.errors import StudyError
from dse.storage.memory import MemoryStorage

SPACE = {"tile": {"integer": [1, 64]}, "share": {"real": [0.1, 0.9]}}


@evaluator(Metric("time", "us", goal="minimize"))
def board(tile: int, share: float):
    return {"time": 20 + 3 * np.log(tile) + 40 * (share - 0.5) ** 2}


@evaluator(Metric("area", "mm^2", goal="minimize"), kind="modelled")
def chip(tile: int):
    return {"area": 2.0 * tile}


def study(optimizer, **more):
    return Study("s", SPACE, [board, chip], optimizer=optimizer, storage=MemoryStorage(), **more)


def truth(made, *designs):
    return [trial.metrics for trial in made.evaluate(*designs)]


@pytest.mark.parametrize(
    ("use", "limit", "errors"),
    [("grey-box", 0.6, 4), pytest.param("qlognehvi", 2.0, 8, marks=pytest.mark.slow)],
)
def test_predictions_are_near_the_truth_and_know_their_error(use, limit, errors):
    made = study({"use": use, "initial": 14})
    made.run(measurements=14)
    asked = [{"tile": tile, "share": share} for tile in (5, 30, 60) for share in (0.2, 0.6)]
    found = made.predict(*asked)
    wrong = np.array(
        [
            one["board.time"].mean - own["board.time"]
            for one, own in zip(found, truth(made, *asked), strict=True)
        ]
    )
    assert np.abs(wrong).max() < limit
    stderr = np.array([one["board.time"].stderr for one in found])
    assert (np.abs(wrong) < errors * stderr + 0.05).all()
    assert [one["chip.area"] for one in found] == [
        (own["chip.area"], 0.0) for own in truth(made, *asked)
    ]


def test_an_evaluated_design_has_a_smaller_error_than_others():
    made = study({"use": "grey-box", "initial": 8})
    made.run(measurements=8)
    near, far = made.trials[0].design, {"tile": 64, "share": 0.9}
    known, unknown = made.predict(near, far)
    assert known["board.time"].stderr < 0.2 * unknown["board.time"].stderr
    assert known["board.time"].mean == pytest.approx(made.trials[0].metrics["board.time"], rel=0.02)


def test_predicting_changes_no_later_design():
    made, twin = study("grey-box"), study("grey-box")
    made.run(measurements=8)
    made.predict({"tile": 5, "share": 0.5})
    made.run(measurements=11)
    twin.run(measurements=11)
    assert [t.design for t in made.trials] == [t.design for t in twin.trials]


def test_optimizers_without_a_surrogate_are_named():
    made = study("random")
    made.run(measurements=4)
    with pytest.raises(StudyError, match="'random' has no surrogate") as caught:
        made.predict({"tile": 5, "share": 0.5})
    assert "grey-box" in caught.value.hint


def test_without_trials_it_is_refused():
    with pytest.raises(StudyError, match="too few finished trials"):
        study("grey-box").predict({"tile": 5, "share": 0.5})
    with pytest.raises(StudyError, match="not chosen yet"):
        study("auto").predict({"tile": 5, "share": 0.5})
