"""Attained planes, against moocore's own and counting one by one."""

import io

import moocore
import numpy as np
import pytest

from dse.analysis.attainment import MOST_EDGES, difference, slices, surfaces

RNG = np.random.default_rng(8)
FIRST = [RNG.random((6, 2)) for _ in range(5)]
SECOND = [RNG.random((6, 2)) * 0.9 for _ in range(5)]
THREE = [RNG.random((6, 3)) for _ in range(5)]
POINT = np.array([2.0, 2.0])


def attaining(fronts, point) -> int:
    return sum(bool((front <= point).all(axis=1).any()) for front in fronts)


@pytest.mark.parametrize("fronts", [FIRST, THREE], ids=["two objectives", "three"])
def test_a_surface_is_just_attained_by_as_many_as_it_says(fronts) -> None:
    found = surfaces(fronts)
    assert [surface.runs for surface in found] == [1, 3, 5]
    counts = [attaining(fronts, row) >= s.runs for s in found for row in s.losses]
    inside = [attaining(fronts, row - 1e-9) >= s.runs for s in found for row in s.losses]
    assert all(counts)
    assert not any(inside)


@pytest.mark.parametrize("size", range(1, 25))
def test_the_median_surface_is_moocores(size: int) -> None:
    fronts = [RNG.random((4, 2)) for _ in range(size)]
    every = moocore.eaf(np.vstack(fronts), sets=np.repeat(np.arange(size), 4))
    levels = np.unique(every[:, -1])
    found = surfaces(fronts)
    for surface in found:
        wanted = every[every[:, -1] == levels[surface.runs - 1]][:, :2]
        np.testing.assert_array_equal(surface.losses, wanted)


def test_runs_without_a_front_attain_nothing() -> None:
    found = surfaces([*FIRST, np.zeros((0, 2))])
    assert [surface.runs for surface in found] == [1, 3]
    assert surfaces([np.zeros((0, 2))]) == []


def sets_of(fronts) -> np.ndarray:
    lines = "\n\n".join("\n".join(f"{a!r} {b!r}" for a, b in front.tolist()) for front in fronts)
    return moocore.read_datasets(io.StringIO(lines))


def test_the_difference_is_moocores_in_every_rectangle() -> None:
    told = difference(FIRST, SECOND, POINT)
    rectangles = moocore.eafdiff(sets_of(FIRST), sets_of(SECOND), rectangles=True)
    corners = np.minimum(rectangles[:, :4], 2.0)
    across = np.searchsorted(told.across, (corners[:, 0] + corners[:, 2]) / 2, side="right") - 1
    up = np.searchsorted(told.up, (corners[:, 1] + corners[:, 3]) / 2, side="right") - 1
    np.testing.assert_allclose(told.shares[up, across] * 5, rectangles[:, 4])
    assert len(rectangles) > 20


def test_groups_of_unlike_sizes_are_told_in_shares() -> None:
    told = difference([np.array([[1.0, 1.0]])], [np.array([[1.0, 1.0]]), np.zeros((0, 2))], POINT)
    assert told.shares.tolist() == [[0.5]]
    assert (told.across.tolist(), told.up.tolist()) == ([1.0, 2.0], [1.0, 2.0])


def test_many_points_are_told_on_a_raster_of_bounded_size() -> None:
    many = [RNG.random((400, 2)) for _ in range(3)]
    told = difference(many, FIRST, POINT)
    assert told.shares.shape == (MOST_EDGES, MOST_EDGES)


def test_nobody_within_the_plane_makes_no_difference() -> None:
    assert difference([POINT[None, :]], [np.zeros((0, 2))], POINT) is None


def test_a_slice_attains_what_the_whole_does_at_its_bound() -> None:
    cut = slices(THREE, 0.4)
    points = RNG.random((50, 2))
    whole = [attaining(THREE, np.append(point, 0.4)) for point in points]
    assert [attaining(cut, point) for point in points] == whole
