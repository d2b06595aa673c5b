"""Rules of early stopping are replayed on curves as by hand, and bad files are refused by line."""

import numpy as np
import pytest

from dse.core.batch import Batch
from dse.errors import SpecError
from dse_evaluators.scaling.recipes.early_stopping import (
    EarlyStopping,
    Halving,
    checkpoints,
    replay_order,
)
from dse_evaluators.scaling.recipes.learning_curves import LearningCurves, predict_better

CURVES = LearningCurves(
    values=np.array([[0.5, 0.6, 0.7, 0.7], [0.2, 0.3, 0.3, 0.9], [0.6, 0.7, 0.8, 0.8]])
)


def test_halving_stops_what_is_not_among_the_best_that_reached_the_checkpoint():
    steps = checkpoints(1, 2, 4)
    judge = Halving(values=CURVES.values[:, steps - 1], eta=3)
    speed_up, regret, stopped = replay_order(np.arange(3), CURVES, steps, judge)
    assert steps.tolist() == [1, 2]
    assert speed_up == pytest.approx(12 / (4 + 1 + 4))
    assert regret == pytest.approx(0.1)
    assert stopped == pytest.approx(1 / 3)


def test_the_probability_to_end_better_falls_with_what_must_be_beaten():
    ends = np.array([0.1, 0.4, 0.5, 0.95])
    rising = 0.5 - 0.3 / np.arange(1, 21)
    values = np.stack([np.append(rising[:-1], one) for one in ends])
    better = predict_better(LearningCurves(values=values), np.array([10]))[0, 0]
    assert better[0] > 0.99
    assert better[3] < 0.01
    assert (np.diff(better) <= 0).all()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("run,epoch,loss\na,1,0.5\n", "curves.csv:1: there is no column 'accuracy'"),
        ("run,epoch,accuracy\na,1,0.5\na,2,1.5\n", "curves.csv:3: accuracy is '1.5'"),
        ("run,epoch,accuracy\na,1,0.5\na,1,0.6\n", "curves.csv:3: run a has epoch 1 twice"),
        (
            "run,epoch,accuracy\na,1,0.5\na,two,0.6\n",
            "curves.csv:3: epoch is 'two', which is no finite number",
        ),
        ("run,epoch,accuracy\na,1,0.5\na,2,0.6\nb,1,0.4\n", "run b has 1 of the epochs"),
    ],
)
def test_a_bad_file_is_refused_with_its_line(tmp_path, text, message):
    path = tmp_path / "curves.csv"
    path.write_text(text)
    with pytest.raises(SpecError, match=message):
        EarlyStopping(file=str(path))


def test_no_rule_saves_nothing(tmp_path):
    path = tmp_path / "curves.csv"
    rows = (f"{run},{epoch},0.{run}{epoch}" for run in (3, 4) for epoch in (1, 2, 3))
    path.write_text("\n".join(["run,epoch,accuracy", *rows]))
    found = EarlyStopping(file=str(path)).evaluate(Batch.of([{"rule": "none"}])).columns
    assert found["speed_up"].tolist() == [1]
    assert found["regret"].tolist() == [0]
