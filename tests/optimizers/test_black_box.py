"""The black-box search on losses over many decades."""

from __future__ import annotations

import numpy as np

from dse.core.batch import Batch
from dse.core.metric import Metrics
from dse.core.parameter import Integer
from dse.core.space import DesignSpace
from dse.optimizers.bayesian.metric_model import kinds_of
from dse.optimizers.grey_box import GreyBox
from dse.testing.known import Known, played, problem_of

GRID = DesignSpace(
    parameters=(Integer(name="n", low=0, high=30), Integer(name="k", low=0, high=30))
)


def known(space: DesignSpace, truth) -> Known:
    problem = problem_of(space, {"loss": "measured"}, {"loss": "minimize"}, truth)
    return Known(problem=problem, truth=truth, front=np.zeros((1, 1)), reference=np.ones(1))


def decades(batch: Batch) -> Metrics:
    """A loss over 18 decades, least at n = 23 and k = 6."""
    return Metrics(
        columns={"loss": 10.0 ** (0.5 * abs(batch["n"] - 23) + 0.3 * abs(batch["k"] - 6))}
    )


def test_losses_over_more_than_twelve_decades_are_learnt_by_their_logarithm() -> None:
    assert kinds_of(np.array([1.0, 1e13]), "s") == ("log",)
    assert kinds_of(np.array([1.0, 1e3]), "s") == ("plain", "log")


def test_the_optimum_of_a_loss_over_many_decades_is_approached() -> None:
    one = known(GRID, decades)
    trials = played(one, GreyBox(one.problem), 25)
    assert min(trial.metrics["loss"] for trial in trials) <= 10**0.6


def test_the_best_loss_is_within_the_reference_point() -> None:
    one = known(GRID, decades)
    optimizer = GreyBox(one.problem)
    played(one, optimizer, 10)
    optimizer.ask(1)
    assert optimizer.expected_gain is not None
