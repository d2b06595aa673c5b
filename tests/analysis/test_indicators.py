"""Progress and distances, against numbers worked out by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dse.analysis.indicators import (
    HypervolumeCurve,
    counted_in,
    epsilon,
    igd_plus,
    lattice,
    r2,
)
from dse.core.design import Design
from dse.core.expressions.parser import parse
from dse.core.metric import Metric
from dse.core.objective import Objective
from dse.core.parameter import Integer
from dse.core.problem import Problem, Source
from dse.core.space import DesignSpace
from dse.core.trial import State, Trial


def problem() -> Problem:
    return Problem(
        space=DesignSpace(parameters=(Integer(name="x", low=0, high=99),)),
        sources={
            name: Source(metric=Metric(name=name), kind="measured", reads=frozenset({"x"}))
            for name in ("t.cost", "t.gain")
        },
        objectives=(
            Objective(expression=parse("t.cost"), goal="minimize"),
            Objective(expression=parse("t.gain"), goal="maximize"),
        ),
    )


def trial(number: int, cost: float, gain: float, *, measured: int = 1, state=State.DONE) -> Trial:
    return Trial(
        number=number,
        design=Design({"x": number}),
        state=state,
        metrics={"t.cost": cost, "t.gain": gain} if state is State.DONE else {},
        cost_s=2.0,
        measured=measured,
    )


# Below the reference point (4, -4), as losses: (1, -1), (2, -2), (3, -3) dominate 3 * 1 first,
# then 2 * 2 with 2 * 1 known already, then 1 * 3 with 1 * 2 known already.
STAIRS = [trial(0, 1, 1), trial(1, 2, 2), trial(2, 3, 3)]
REFERENCE = (4.0, 0.0)


def test_the_hypervolume_grows_by_what_each_trial_adds() -> None:
    progress = HypervolumeCurve.of(problem(), STAIRS, REFERENCE, "measurements")
    assert progress.hypervolume.tolist() == [3.0, 5.0, 6.0]


def test_a_trial_that_cost_no_measurement_counts_as_none() -> None:
    trials = [trial(0, 1, 1), trial(1, 2, 2, measured=0), trial(2, 3, 3, measured=2)]
    progress = HypervolumeCurve.of(problem(), trials, REFERENCE, counted_in(trials))
    assert progress.counts.tolist() == [1, 1, 3]


def test_trials_count_where_none_cost_a_measurement() -> None:
    trials = [trial(0, 1, 1, measured=0), trial(1, 2, 2, measured=0)]
    progress = HypervolumeCurve.of(problem(), trials, REFERENCE, counted_in(trials))
    assert progress.counts.tolist() == [1, 2]


def test_failed_trials_spend_and_unfinished_ones_do_not() -> None:
    trials = [
        trial(0, 1, 1, state=State.FAILED),
        trial(1, 1, 1, state=State.RUNNING),
        trial(2, 1, 1),
    ]
    progress = HypervolumeCurve.of(problem(), trials, REFERENCE, "measurements")
    assert progress.seconds.tolist() == [2.0, 4.0]
    assert progress.hypervolume.tolist() == [0.0, 3.0]


def test_without_a_reference_point_the_volume_stays_zero() -> None:
    progress = HypervolumeCurve.of(problem(), STAIRS, None, "trials")
    assert progress.hypervolume.tolist() == [0.0, 0.0, 0.0]


# Ideal front (0, 10), (1, 0), ranges 1 and 10; the row (0.5, 10) is 0.5 and 1 away, as shares.
FRONT = np.array([[0.0, 10.0], [1.0, 0.0]])


def test_igd_plus_is_the_mean_distance_to_what_should_be_covered() -> None:
    assert igd_plus(np.array([[0.5, 10.0]]), FRONT) == pytest.approx(0.75)


def test_epsilon_is_the_largest_step_that_is_missing() -> None:
    assert epsilon(np.array([[0.5, 10.0]]), FRONT) == pytest.approx(1.0)


def test_the_best_front_is_at_no_distance_from_itself() -> None:
    assert igd_plus(FRONT, FRONT) == pytest.approx(0.0)
    assert epsilon(FRONT, FRONT) == pytest.approx(0.0)


def test_no_front_has_no_distance() -> None:
    assert igd_plus(np.zeros((0, 2)), FRONT) is None
    assert epsilon(np.zeros((0, 2)), FRONT) is None
    assert r2(np.zeros((0, 2)), FRONT) is None


RNG = np.random.default_rng(4)
UNIT = np.array([[0.0, 1.0], [1.0, 0.0]])  # shares of its range are the numbers themselves


@pytest.mark.parametrize("size", [2, 3, 4])
def test_distances_are_those_of_their_definitions(size: int) -> None:
    best = np.eye(size)
    losses = RNG.random((7, size)) + 0.2
    steps = losses[:, None, :] - best[None, :, :]  # (7, size, size)
    wanted = np.sqrt((np.maximum(steps, 0) ** 2).sum(axis=2)).min(axis=0).mean()
    assert igd_plus(losses, best) == pytest.approx(wanted)
    assert epsilon(losses, best) == pytest.approx(steps.max(axis=2).min(axis=0).max())


def test_r2_of_one_row_is_the_mean_of_its_larger_weighted_loss() -> None:
    # Of (1/2, 1/2) the larger of w/2 and (1 - w)/2 is 3/8 on average.
    assert r2(np.array([[0.5, 0.5]]), UNIT) == pytest.approx(3 / 8)


def test_r2_of_two_objectives_is_what_a_fine_lattice_tells() -> None:
    losses = RNG.random((6, 2))
    weights = (np.arange(20_000) + 0.5) / 20_000
    worst = np.maximum(losses[:, :1] * weights, losses[:, 1:] * (1 - weights))
    assert r2(losses, UNIT) == pytest.approx(worst.min(axis=0).mean(), rel=1e-4)


def test_r2_of_three_objectives_is_the_mean_over_the_lattice() -> None:
    losses = RNG.random((6, 3))
    each = [
        min(max(w * x for w, x in zip(ws, row, strict=True)) for row in losses) for ws in lattice(3)
    ]
    assert r2(losses, np.eye(3)) == pytest.approx(sum(each) / 496)


@pytest.mark.parametrize(("size", "count"), [(3, 496), (4, 455), (5, 495)])
def test_a_lattice_holds_every_even_weighing_once(size: int, count: int) -> None:
    weights = lattice(size)
    assert weights.shape == (count, size)
    assert len(np.unique(weights, axis=0)) == count
    np.testing.assert_allclose(weights.sum(axis=1), 1.0)


def test_a_single_objective_is_lost_by_what_is_missing() -> None:
    assert r2(np.array([[3.0], [2.0]]), np.array([[1.5]])) == pytest.approx(0.5)


def test_a_better_front_has_less_of_every_distance() -> None:
    poor = RNG.random((5, 2)) + 0.1
    good = poor - 0.05
    assert r2(good, UNIT) < r2(poor, UNIT)
    assert igd_plus(good, UNIT) <= igd_plus(poor, UNIT)
    assert epsilon(good, UNIT) <= epsilon(poor, UNIT)


pairs = st.lists(st.tuples(st.floats(-5, 5), st.floats(-5, 5)), min_size=1, max_size=30)


@given(pairs)
def test_the_hypervolume_never_falls(points: list[tuple[float, float]]) -> None:
    trials = [trial(number, *point) for number, point in enumerate(points)]
    volumes = HypervolumeCurve.of(problem(), trials, REFERENCE, "trials").hypervolume
    assert (np.diff(volumes) >= -1e-12).all()
