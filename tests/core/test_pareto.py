"""Fronts and hypervolumes."""

import itertools

import numpy as np
import pytest
from hypothesis import given

from dse.core.pareto import (
    MOST_EXACT,
    hypervolume,
    hypervolume_share,
    most_exact,
    nondominated,
)
from dse.testing.strategies import losses


@given(losses())
def test_the_front_beats_the_rest_and_only_the_rest(table):
    best = nondominated(table)
    front = table[best]
    for row in table[~best]:
        assert ((front <= row).all(axis=1)).any()
    for row in front:
        assert not ((front <= row).all(axis=1) & (front < row).any(axis=1)).any()


@given(losses(columns=1))
def test_one_objective_has_one_best(table):
    assert nondominated(table).sum() == 1


@pytest.mark.parametrize(
    ("rows", "reference", "volume"),
    [
        ([[1, 1]], [3, 4], 6.0),
        ([[1, 3], [2, 2], [3, 1]], [4, 4], 6.0),
        ([[1, 1, 1], [0, 2, 2]], [3, 3, 3], 9.0),
        ([[5, 5]], [4, 4], 0.0),
        ([[2.0], [1.0]], [4.0], 3.0),
    ],
)
def test_a_hypervolume_is_the_volume_of_the_union_of_boxes(rows, reference, volume):
    assert hypervolume(np.array(rows, float), np.array(reference, float)) == pytest.approx(volume)


@pytest.mark.parametrize("objectives", [6, 7, 8, 9])
def test_of_many_rows_and_objectives_the_volume_is_estimated_within_a_thousandth(
    objectives, monkeypatch
):
    rows = np.abs(np.random.default_rng(0).normal(size=(60, objectives)))
    rows = 1 - rows / np.linalg.norm(rows, axis=1)[:, None]
    point = np.full(objectives, 1.1)
    monkeypatch.setitem(MOST_EXACT, objectives, 1_000)
    exact = hypervolume(rows, point)
    monkeypatch.setitem(MOST_EXACT, objectives, 10)
    estimated = hypervolume(rows, point)
    assert estimated != exact
    assert estimated == pytest.approx(exact, rel=1e-3)
    assert hypervolume(rows, point) == estimated


def test_a_thousand_designs_of_twelve_objectives_have_a_volume():
    rows = np.random.default_rng(0).random((1_000, 12))
    assert 0 < hypervolume(rows[nondominated(rows)], np.ones(12)) < 1


def test_the_more_objectives_the_fewer_rows_are_measured_exactly():
    bounds = [most_exact(objectives) for objectives in range(1, 20)]
    assert bounds[0] == np.inf
    assert bounds == sorted(bounds, reverse=True)


@pytest.mark.parametrize("columns", [2, 3, 4])
def test_an_infinity_is_the_worst_or_the_best_of_numbers(columns):
    rows = [[-np.inf] + [np.inf] * (columns - 1), [0.0] * columns, [0.0] * (columns - 1) + [np.inf]]
    assert nondominated(np.array(rows * 20)).tolist() == [True, True, False] + [False] * 57


def share(rows, reference, ideal=None):
    rows, point = np.array(rows, float), np.array(reference, float)
    best = rows.min(axis=0) if ideal is None else np.array(ideal, float)
    return hypervolume_share(hypervolume(rows, point), point, best)


@pytest.mark.parametrize(
    ("rows", "reference", "expected"),
    [
        ([[1, 1]], [3, 4], 1.0),
        ([[1, 3], [2, 2], [3, 1]], [4, 4], 6 / 9),
        ([[5, 1], [1, 5]], [4, 4], 0.0),
        ([[5, 5]], [4, 4], 0.0),
    ],
)
def test_a_share_is_of_the_box_between_the_reference_and_the_ideal_point(rows, reference, expected):
    assert share(rows, reference) == pytest.approx(expected)


@pytest.mark.parametrize("scale", [1e-200, 1e-12, 1e12, 1e150])
def test_a_share_does_not_depend_on_units(scale):
    rows, point = np.array([[1, 3], [2, 2], [3, 1.0]]), np.array([4.0, 4.0])
    factors = np.array([scale, 1.0])
    assert share(rows * factors, point * factors) == pytest.approx(6 / 9)


@given(losses(columns=2))
def test_a_share_never_falls_when_a_design_is_added_and_the_ideal_point_stays(table):
    ideal, point = table.min(axis=0), table.max(axis=0) + 1
    shares = [share(table[:count], point, ideal) for count in range(1, len(table) + 1)]
    assert all(a <= b + 1e-9 for a, b in itertools.pairwise(shares))
    assert 0 <= shares[-1] <= 1
