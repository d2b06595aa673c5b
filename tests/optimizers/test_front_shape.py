"""The shape of a front is found from its members."""

import numpy as np
import pytest

from dse.optimizers.evolutionary.front_shape import FrontShape


def _front(power, count=60, objectives=3):
    points = np.abs(np.random.default_rng(3).normal(size=(count, objectives)))
    points = np.concatenate([points, np.eye(objectives)])
    return points / (points**power).sum(axis=1, keepdims=True) ** (1 / power)


@pytest.mark.parametrize("power", [0.5, 1.0, 2.0, 4.0])
def test_the_power_of_a_front_is_found(power):
    assert FrontShape.of(_front(power)).power == pytest.approx(power, rel=0.02)


def test_ideal_and_spans_are_those_of_the_plane_through_the_ends():
    shape = FrontShape.of(_front(2.0) * [1.0, 10.0, 0.1] + [5.0, 0.0, -1.0])
    assert shape.ideal == pytest.approx([5.0, 0.0, -1.0])
    assert shape.spans == pytest.approx([1.0, 10.0, 0.1])


def test_the_ends_are_worth_most_and_the_crowded_least():
    angles = np.radians([0, 20, 40, 41, 70, 90])
    scores = FrontShape.of(front := np.column_stack([np.cos(angles), np.sin(angles)])).spread(front)
    assert np.isinf(scores[[0, 5]]).all()
    assert int(np.argmin(scores)) in (2, 3)


def test_the_nearer_to_the_ideal_the_better():
    near = FrontShape.of(_front(2.0)).nearness(np.array([[1.0, 1.0, 1.0], [2.0, 2.0, 2.0]]))
    assert near == pytest.approx([3**-0.5, 12**-0.5], rel=0.02)


@pytest.mark.parametrize(
    "front",
    [
        np.array([[1.0, 2.0]]),
        np.array([[1.0, 2.0], [2.0, 1.0]]),
        np.ones((5, 2)),
        np.array([[3.0]]),
        np.array([[0.0, 1.0, 0.0], [0.0, 0.5, 0.5], [0.0, 0.0, 1.0], [0.0, 0.2, 0.8]]),
    ],
)
def test_a_front_without_much_shape_has_scores_too(front):
    shape = FrontShape.of(front)
    assert not np.isnan(shape.spread(front)).any()
    assert not np.isnan(shape.nearness(front)).any()
