"""What a surrogate is taught."""

from dataclasses import replace

import numpy as np
import pytest

from dse.core.trial import State
from dse.optimizers.bayesian.training_data import Scale, build_training_data
from dse.optimizers.support.unseen_designs import fresh
from dse.testing.problems import all_infeasible, pocket_codesign, tiny_codesign, zdt1


def _trials(known, count=12):
    return known.finished(fresh(known.problem.space, count, np.random.default_rng(5), ()))


@pytest.mark.parametrize(
    ("losses", "log"),
    [([1.0, 9.0], 0), ([1.0, 11.0], 1), ([-1.0, -11.0], -1), ([-1.0, 50.0], 0), ([0.0, 50.0], 0)],
)
def test_losses_that_span_a_decade_on_one_side_of_zero_are_learnt_as_logarithms(losses, log):
    assert Scale.of(np.array(losses), 100.0).log == log


@pytest.mark.parametrize("losses", [[1.0, 5.0, 40.0], [-1.0, -5.0, -40.0], [-3.0, 0.0, 9.0]])
def test_what_is_learnt_finds_its_way_back(losses):
    scale = Scale.of(np.array(losses), 50.0)
    learnt = scale.learnt(np.array(losses))
    assert scale.losses(learnt) == pytest.approx(losses)
    assert (learnt.mean(), learnt.std()) == pytest.approx((0, 1))


def test_the_reference_point_is_judged_zero_and_the_best_loss_minus_one():
    scale = Scale.of(np.array([2.0, 3.0, 4.0]), 5.0)
    assert scale.judged(np.array([5.0, 2.0])).tolist() == [0.0, -1.0]


def test_equal_losses_are_no_trouble():
    scale = Scale.of(np.array([2.0, 2.0]), 2.0)
    assert np.isfinite(scale.learnt(np.array([2.0]))).all()
    assert np.isfinite(scale.judged(np.array([2.0]))).all()


def test_observed_spread_becomes_the_variance_of_a_bare_metric():
    known = zdt1()
    trials = [replace(trial, spread={"f2": 0.5}) for trial in _trials(known)]
    first, second = build_training_data(known.problem, trials).targets
    width = np.std([trial.metrics["f2"] for trial in trials])
    assert first.variances is None
    assert second.variances == pytest.approx(np.full(12, (0.5 / width) ** 2))


def test_spread_that_one_trial_lacks_is_not_used():
    known = zdt1()
    trials = _trials(known)
    trials = [replace(trial, spread={"f2": 0.5}) for trial in trials[1:]] + trials[:1]
    assert build_training_data(known.problem, trials).targets[1].variances is None


def test_only_limits_that_read_a_measured_metric_are_learnt():
    known = pocket_codesign()
    trials = [trial for trial in _trials(known) if trial.state is State.DONE]
    learnt = build_training_data(known.problem, trials)
    assert len(known.problem.limits) == 2
    assert [target.threshold is None for target in learnt.targets] == [True, True, False]


def test_a_learnt_limit_is_kept_where_its_target_reaches_the_threshold():
    known = tiny_codesign()
    trials = [trial for trial in _trials(known, 60) if trial.state is State.DONE]
    target = build_training_data(known.problem, trials).targets[-1]
    kept = target.values >= target.threshold
    assert kept.tolist() == [trial.metrics["cost"] <= 60 for trial in trials]


def test_once_a_trial_has_no_metrics_success_is_learnt_too():
    known = pocket_codesign()
    trials = known.finished(known.problem.space.batch(_ALL_SPLITS).designs())
    success = build_training_data(known.problem, trials).targets[-1]
    assert success.values.tolist() == [1.0, 1.0, -1.0]


def test_while_nothing_is_feasible_the_nearest_trials_are_the_elite():
    known = all_infeasible()
    trials = _trials(known, 8)
    learnt = build_training_data(known.problem, trials)
    assert not learnt.baseline.any()
    assert trials[learnt.elite[0]].metrics["f"] == 1.0


def test_one_trial_teaches_nothing():
    known = zdt1()
    assert build_training_data(known.problem, _trials(known, 1)) is None


_ALL_SPLITS = [
    {"tp": 1, "dp": 8, "format": "fp8"},
    {"tp": 2, "dp": 8, "format": "fp8"},
    {"tp": 4, "dp": 4, "format": "fp8"},
]
