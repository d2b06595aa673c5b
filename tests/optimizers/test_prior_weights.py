"""Weight of a prior model, and its predictions."""

import numpy as np
import pytest

from dse.core.problem import Prior
from dse.optimizers.bayesian.fidelity_agreement import agreement, kendall
from dse.optimizers.bayesian.transfer_prior import PriorMean, weight
from dse.testing.problems import tiny_codesign, zdt1


def test_a_prior_has_half_weight_before_any_measurement():
    assert weight(np.array([]), np.array([])) == 0.5


def test_the_weight_of_a_prior_rises_with_agreement_and_falls_with_disagreement():
    own = np.arange(20.0)
    assert weight(own**3, own) == pytest.approx((190 + 5) / 200)
    assert weight(-own, own) == 0.0
    assert weight(own[:3] * 2, own[:3]) < weight(own[:9] * 2, own[:9])


def test_a_prior_of_noise_has_little_weight():
    rng = np.random.default_rng(0)
    assert weight(rng.random(60), rng.random(60)) < 0.15


def test_the_agreement_is_that_of_kendall():
    from scipy.stats import kendalltau

    rng = np.random.default_rng(1)
    one, other = rng.random(30).round(1), rng.random(30).round(1)
    assert kendall(one, other) == pytest.approx(kendalltau(one, other).statistic)


def test_equal_values_have_no_order_to_agree_on():
    assert kendall(np.ones(5), np.arange(5.0)) is None


def test_what_is_unknown_does_not_count():
    assert agreement(np.array([1.0, np.nan, 3.0]), np.array([2.0, 9.0, 4.0])) == (1.0, 1.0)


def test_a_guess_follows_what_the_prior_knows_between_its_designs():
    known = zdt1(2)
    space, rng = known.problem.space, np.random.default_rng(2)
    train, test = space.sample(60, rng), space.sample(50, rng)
    told = known.truth(train).columns["f2"]
    prior = Prior(study="old", designs=tuple(train.designs()), metrics={"f2": told})
    guess = PriorMean.of(known.problem, prior)(test)["f2"]
    assert np.corrcoef(guess, known.truth(test).columns["f2"])[0, 1] > 0.98


def test_gaps_and_equal_values_are_no_trouble():
    known = tiny_codesign()
    batch = known.problem.space.sample(5, np.random.default_rng(3))
    told = {"accuracy": np.array([0.9, np.nan, 0.9, 0.9, np.nan]), "cost": np.arange(5.0)}
    prior = Prior(study="old", designs=tuple(batch.designs()), metrics=told)
    guess = PriorMean.of(known.problem, prior)(batch)
    assert guess["accuracy"].tolist() == [pytest.approx(0.9)] * 5
    assert np.argsort(guess["cost"]).tolist() == [0, 1, 2, 3, 4]
