"""A cheap measure brought onto the scale of the true one."""

import numpy as np
import pytest

from dse.optimizers.bayesian.fidelity_calibration import choose_calibration, held_out

RNG = np.random.default_rng(4)
LOW = RNG.uniform(0.1, 1.0, 40)
NOISE = RNG.normal(0, 0.01, 40)


@pytest.mark.parametrize(
    ("high", "kind"),
    [
        (LOW + 0.1 * NOISE, "as it is"),
        (0.3 - 2 * LOW + NOISE, "linear"),
        (5 * LOW**-1.7 * np.exp(NOISE), "logarithmic"),
        (np.where(LOW < 0.5, 0.0, 1.0) + NOISE, "monotone"),
    ],
)
def test_the_plainest_curve_that_fits_is_taken(high, kind):
    assert choose_calibration(LOW, high).kind == kind


def test_a_line_is_found_again():
    found = choose_calibration(LOW, 3 * LOW - 1)
    assert found(np.array([0.0, 1.0])) == pytest.approx([-1.0, 2.0])


def test_a_falling_curve_stays_monotone():
    found = choose_calibration(LOW, -np.round(3 * LOW) + NOISE)
    assert (np.diff(found(np.linspace(0, 1, 50))) <= 0).all()


def test_the_held_out_error_is_that_of_the_noise_and_not_of_the_fit():
    errors = held_out(LOW, 2 * LOW + NOISE) - (2 * LOW + NOISE)
    assert 0.5 * NOISE.std() < errors.std() < 1.5 * NOISE.std()


def test_a_measure_that_tells_nothing_predicts_no_better_than_the_mean():
    high = RNG.normal(0, 1, 40)
    assert (held_out(LOW, high) - high).std() > 0.9 * high.std()


@pytest.mark.parametrize("count", [0, 1, 2, 3])
def test_too_few_designs_calibrate_nothing(count):
    found = choose_calibration(LOW[:count], 2 * LOW[:count])
    assert found.kind == "as it is"
    assert held_out(LOW[:count], LOW[:count]).tolist() == LOW[:count].tolist()


def test_equal_values_are_no_trouble():
    assert choose_calibration(np.ones(8), np.arange(8.0))(np.ones(1)) == pytest.approx([3.5])
