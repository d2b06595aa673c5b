from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import check_grad

from dse.optimizers.separable import sum_process
from dse.optimizers.separable.sum_process import SumLayout, SumProcess

RNG = np.random.default_rng(5)
LAYOUT = SumLayout(
    owners=np.arange(4), alone=np.full(4, 0.5), parents=np.array([0, 1, 2, -1]), features=3
)
OWN = RNG.random((24, 4)).round(1)
POINTS = np.column_stack([OWN, OWN[:, :3] ** 2])
SENSITIVITIES = np.array([0.5, 3.0, 1.0])
VALUES = POINTS[:, 4:] @ SENSITIVITIES
VALUES = (VALUES - VALUES.mean()) / VALUES.std()
HYPER = np.array([0.2, -1.5, -2.0, -4.0])


def test_it_learns_the_sensitivities_of_a_sum_from_a_few_values() -> None:
    process = SumProcess.fit(POINTS[:8], VALUES[:8], LAYOUT)
    means, _ = process.moments(POINTS[8:])
    assert means == pytest.approx(VALUES[8:], abs=0.1)


def test_the_slope_of_the_posterior_density_is_its_derivative() -> None:
    kernels, basis = sum_process._kernels(POINTS, LAYOUT)
    wrong = check_grad(
        lambda hyper: sum_process._loss(hyper, kernels, basis, VALUES, None)[0],
        lambda hyper: sum_process._loss(hyper, kernels, basis, VALUES, None)[1],
        HYPER,
    )
    assert wrong < 1e-4


def test_leaving_one_out_is_what_a_sum_without_it_predicts() -> None:
    whole = SumProcess.at(POINTS, VALUES, LAYOUT, HYPER)
    less = SumProcess.at(POINTS[1:], VALUES[1:], LAYOUT, HYPER)
    means, _ = whole.left_out(VALUES)
    assert means[0] == pytest.approx(less.moments(POINTS[:1])[0][0], abs=0.02)


def test_the_effects_of_parts_sum_to_the_posterior_without_interactions() -> None:
    hyper = np.array([0.2, -1.5, -40.0, -4.0])
    process = SumProcess.at(POINTS, VALUES, LAYOUT, hyper)
    blocks = [np.array([place]) for place in range(4)]
    effects = np.zeros(24)
    for place, own in enumerate(blocks):
        features = np.zeros((24, 3))
        if place < 3:
            features[:, place] = POINTS[:, 4 + place]
        effects += process.term_effects(features, OWN, own)
    means, _ = process.moments(POINTS)
    assert effects + process.trend[0] == pytest.approx(means, abs=1e-6)


def test_it_is_surer_of_what_changes_little_than_of_what_changes_much() -> None:
    process = SumProcess.fit(POINTS[:8], VALUES[:8], LAYOUT)
    corners = np.array([[0.05] * 4 + [0.0025] * 3, [1.0] * 7])
    _, deviations = process.moments(corners)
    assert deviations[0] < deviations[1]
