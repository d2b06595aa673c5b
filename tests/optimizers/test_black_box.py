"""The black-box search on losses over many decades, and next to a region of failures."""

from __future__ import annotations

import numpy as np

from dse.core.batch import Batch
from dse.core.metric import Failure, Metrics
from dse.core.parameter import Integer, Real
from dse.core.pareto import hypervolume, nondominated
from dse.core.space import DesignSpace
from dse.core.trial import State
from dse.optimizers.bayesian.metric_model import kinds_of
from dse.optimizers.bayesian.posterior import caution_after
from dse.optimizers.grey_box import GreyBox
from dse.testing.known import Known, played, problem_of

GRID = DesignSpace(
    parameters=(Integer(name="n", low=0, high=30), Integer(name="k", low=0, high=30))
)
REALS = DesignSpace(parameters=tuple(Real(name=f"x{k}", low=0.0, high=1.0) for k in range(3)))


def known(space: DesignSpace, truth) -> Known:
    problem = problem_of(space, {"loss": "measured"}, {"loss": "minimize"}, truth)
    return Known(problem=problem, truth=truth, front=np.zeros((1, 1)), reference=np.ones(1))


def decades(batch: Batch) -> Metrics:
    """A loss over 18 decades, least at n = 23 and k = 6."""
    return Metrics(
        columns={"loss": 10.0 ** (0.5 * abs(batch["n"] - 23) + 0.3 * abs(batch["k"] - 6))}
    )


def slope(batch: Batch) -> Metrics:
    """A loss that falls into a region of failures, which has half of the designs."""
    x = np.column_stack([batch[f"x{k}"] for k in range(3)])
    broken = np.flatnonzero(x.sum(axis=1) > 1.5).tolist()
    failures = {row: Failure(kind="crashed", reason="out of memory") for row in broken}
    return Metrics(columns={"loss": ((x - 0.9) ** 2).sum(axis=1)}, failures=failures)


def test_losses_over_more_than_twelve_decades_are_learnt_by_their_logarithm() -> None:
    assert kinds_of(np.array([1.0, 1e13]), "s") == ("log",)
    assert kinds_of(np.array([1.0, 1e3]), "s") == ("plain", "log")


def test_rounding_errors_of_0_are_no_decades_if_there_are_several_objectives() -> None:
    cosines = np.cos(np.array([np.pi / 2, 1.0, 0.0]))
    assert kinds_of(cosines, "s") == ("log",)
    assert kinds_of(cosines, "s", several=True) == ("plain",)
    assert kinds_of(np.array([1.0, 1e13]), "s", several=True) == ("log",)


def test_a_front_with_rounding_errors_of_0_is_approached() -> None:
    """DTLZ2 with two objectives, one of which is about 6e-17 at an end of the front."""

    def truth(batch: Batch) -> Metrics:
        x = np.column_stack([batch[f"x{k}"] for k in range(3)])
        size = 1 + ((x[:, 1:] - 0.5) ** 2).sum(axis=1)
        angle = x[:, 0] * np.pi / 2
        return Metrics(columns={"f": size * np.cos(angle), "g": size * np.sin(angle)})

    goals = {"f": "minimize", "g": "minimize"}
    problem = problem_of(REALS, dict.fromkeys(goals, "measured"), goals, truth)
    one = Known(problem=problem, truth=truth, front=np.zeros((1, 2)), reference=np.ones(2))
    trials = played(one, GreyBox(problem), 25)
    losses = np.array([[trial.metrics[name] for name in "fg"] for trial in trials])
    volume = hypervolume(losses[nondominated(losses)], np.array([1.1, 1.1]))
    assert volume > 0.9 * (1.21 - np.pi / 4)


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


def test_a_loss_that_falls_towards_failures_is_followed_with_caution() -> None:
    one = known(REALS, slope)
    trials = played(one, GreyBox(one.problem), 26)
    failed = [trial.state is State.FAILED for trial in trials]
    assert sum(failed[6:]) <= 13  # without caution 17; the optimum is on the edge of the failures
    assert 1.0 + 2.0 * sum(failed[-8:]) == caution_after(trials)
