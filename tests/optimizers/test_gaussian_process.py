from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import check_grad
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel

from dse.optimizers.bayesian import gaussian_process
from dse.optimizers.bayesian.gaussian_process import GaussianProcess, Hyper, owners_of

RNG = np.random.default_rng(4)
POINTS = RNG.random((30, 3))
VALUES = np.sin(4 * POINTS[:, 0]) + POINTS[:, 1] ** 2
VALUES = (VALUES - VALUES.mean()) / VALUES.std()
OWNERS = np.arange(3)


def test_without_main_effects_it_predicts_as_scikit_learn_does() -> None:
    hyper = Hyper(lengths=np.log([0.5, 0.8, 2.0]), main=-50.0, noise=np.log(1e-3))
    own = GaussianProcess.at(POINTS, VALUES, OWNERS, hyper)
    kernel = ConstantKernel(own.amplitude) * Matern([0.5, 0.8, 2.0], nu=2.5)
    noise = WhiteKernel(own.amplitude * (1e-3 + 1e-8))
    peer = GaussianProcessRegressor(kernel + noise, alpha=0.0, optimizer=None)
    peer.fit(POINTS, VALUES - own.mean)
    there = RNG.random((20, 3))
    means, deviations = peer.predict(there, return_std=True)
    found = own.moments(there)
    assert found[0] == pytest.approx(means + own.mean, abs=1e-6)
    assert found[1] ** 2 == pytest.approx(deviations**2 - noise.noise_level, abs=1e-6)


def test_the_slope_of_the_posterior_density_is_its_derivative() -> None:
    gaps = gaussian_process.block_gaps(POINTS, OWNERS, 3)
    alone = gaussian_process.alone_kernel(gaps, np.full(3, 0.5))
    start = np.array([-0.3, 0.1, 0.8, 0.4, -5.0])
    wrong = check_grad(
        lambda theta: gaussian_process._loss(theta, gaps, alone, VALUES, None)[0],
        lambda theta: gaussian_process._loss(theta, gaps, alone, VALUES, None)[1],
        start,
    )
    assert wrong < 1e-4


def test_leaving_one_out_is_what_a_process_without_it_predicts() -> None:
    hyper = Hyper.start(3)
    whole = GaussianProcess.at(POINTS, VALUES, OWNERS, hyper)
    less = GaussianProcess.at(POINTS[1:], VALUES[1:], OWNERS, hyper)
    means, _ = whole.left_out(VALUES)
    assert means[0] == pytest.approx(less.moments(POINTS[:1])[0][0], abs=0.02)


def test_what_was_seen_of_one_parameter_is_carried_to_where_others_were_not_seen() -> None:
    corners = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]], dtype=float)
    values = corners.sum(axis=1) - 0.75
    process = GaussianProcess.fit(corners, values, OWNERS)
    assert process.moments(np.ones((1, 3)))[0][0] > values.max()


def test_observed_variances_make_it_trust_a_value_less() -> None:
    hyper = Hyper.start(3)
    odd = VALUES.copy()
    odd[0] += 3
    sure = GaussianProcess.at(POINTS, odd, OWNERS, hyper)
    unsure = GaussianProcess.at(
        POINTS, odd, OWNERS, hyper, variances=np.where(np.arange(30) == 0, 4.0, 0.0)
    )
    there = POINTS[:1]
    assert abs(unsure.moments(there)[0][0] - odd[0]) > abs(sure.moments(there)[0][0] - odd[0]) + 0.5


def test_equal_values_are_no_trouble() -> None:
    process = GaussianProcess.fit(POINTS, np.zeros(30), OWNERS)
    means, deviations = process.moments(POINTS)
    assert np.isfinite(means).all()
    assert np.isfinite(deviations).all()


def test_coordinates_belong_to_their_blocks() -> None:
    assert owners_of([1, 3, 1]).tolist() == [0, 1, 1, 1, 2]
