"""The gap: how much hypervolume designs that are not measured yet may add to the front."""

from dataclasses import replace

import numpy as np
import pytest

from dse.core.pareto import ParetoSet, hypervolume
from dse.optimizers.bayesian import gap_candidates
from dse.optimizers.bayesian.conformal_band import ConformalBand, MeasuredValues
from dse.optimizers.bayesian.hypervolume_gap import GapEstimator
from dse.optimizers.bayesian.measured_settings import MeasuredSplit
from dse.optimizers.random_search import RandomSearch
from dse.testing.known import played
from dse.testing.problems import all_infeasible, mixed_reals, one_design, tiny_codesign, zdt1


@pytest.fixture(scope="module")
def known():
    return tiny_codesign()


@pytest.fixture(scope="module")
def trials(known):
    return played(known, RandomSearch(known.problem), 60)


def missing(known, trials):
    """The share of the true hypervolume that the trials miss."""
    front = ParetoSet.of(known.problem, trials)
    whole = hypervolume(known.front, front.reference)
    return 1 - hypervolume(front.losses, front.reference) / whole


def test_the_gap_bounds_what_is_missing(known, trials):
    estimator = GapEstimator(known.problem)
    found = [estimator.estimate(trials[:count]) for count in (30, 40, 50, 60)]
    assert all(
        gap.share >= missing(known, trials[:count])
        for gap, count in zip(found, (30, 40, 50, 60), strict=True)
    )
    assert found[-1].share < 0.5


def test_the_gap_is_unknown_before_there_are_predictions_to_calibrate_it(known, trials):
    assert GapEstimator(known.problem).estimate(trials[:10]) is None


def test_the_gap_is_a_function_of_the_record(known, trials):
    often = GapEstimator(known.problem)
    steps = [often.estimate(trials[:count]) for count in range(0, 41, 5)]
    assert steps[-1].share == GapEstimator(known.problem).estimate(trials[:40]).share


def test_a_higher_confidence_gives_a_larger_gap(known, trials):
    shares = [
        GapEstimator(known.problem, confidence=confidence).estimate(trials).share
        for confidence in (0.6, 0.9)
    ]
    assert shares[0] < shares[1]


def test_the_gap_of_exact_metrics_is_what_is_missing():
    known = tiny_codesign(kind="modelled")
    trials = played(known, RandomSearch(known.problem), 20)
    share = GapEstimator(known.problem).estimate(trials).share
    assert share == pytest.approx(missing(known, trials))


def test_the_gap_is_zero_once_every_design_is_evaluated():
    known = tiny_codesign(kind="modelled")
    every = known.finished(next(iter(known.problem.space.enumerate())).designs())
    found = GapEstimator(known.problem).estimate(every)
    assert (found.share, len(found.undecided)) == (0.0, 0)


def test_designs_that_share_a_measurement_count_as_found_if_the_front_is_completed(known, trials):
    gaps = [
        GapEstimator(known.problem, completes=completes).estimate(trials[:40]).share
        for completes in (True, False)
    ]
    assert gaps[0] <= gaps[1]


def test_undecided_designs_are_not_dominated_by_the_front(known, trials):
    points = GapEstimator(known.problem).estimate(trials).undecided
    front = ParetoSet.of(known.problem, trials).losses
    beaten = (front[None] <= points[:, None]).all(axis=2).any(axis=1)
    assert len(points)
    assert not beaten.any()


@pytest.mark.parametrize("problem", [zdt1(dimensions=2), mixed_reals()], ids=["zdt1", "mixed"])
def test_a_space_of_real_parameters_is_sampled(problem, monkeypatch):
    monkeypatch.setattr(gap_candidates, "DRAWN", 512)
    monkeypatch.setattr(gap_candidates, "BRED", 128)
    trials = played(problem, RandomSearch(problem.problem), 24)
    found = GapEstimator(problem.problem).estimate(trials)
    assert not found.is_listed
    assert 0 < found.share < 1
    again = GapEstimator(problem.problem).estimate(trials)
    assert found.share == again.share


@pytest.mark.parametrize("known", [one_design(), all_infeasible()], ids=["one", "infeasible"])
def test_the_gap_is_unknown_without_a_reference_point_or_a_feasible_design(known):
    every = known.finished(next(iter(known.problem.space.enumerate())).designs())
    assert GapEstimator(known.problem).estimate(every) is None
    assert GapEstimator(known.problem).estimate([]) is None


def test_the_band_is_wider_if_measurements_were_better_than_predicted(known, trials):
    split = MeasuredSplit(problem=known.problem)
    values = MeasuredValues.of(known.problem, split, trials[:30])
    band = ConformalBand(problem=known.problem, split=split)
    band.learn(values)
    worse = replace(values, values=values.values + np.linspace(0, 1, len(values.values))[:, None])
    drifted = ConformalBand(problem=known.problem, split=split)
    drifted.learn(worse)
    assert band.scores.shape[1] == values.values.shape[1]
    assert (drifted.scores.mean(axis=0) < band.scores.mean(axis=0)).all()
