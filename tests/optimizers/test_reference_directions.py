"""Directions are spread evenly, and are the same each time."""

import numpy as np
import pytest

from dse.errors import PluginError
from dse.optimizers.evolutionary.reference_directions import directed_population, directions_of
from dse.testing.known import dtlz2


@pytest.mark.parametrize(
    ("objectives", "size", "count"),
    [
        (2, 24, 24),  # any number fits
        (3, 100, 91),  # 12 steps: C(14, 2)
        (6, 56, 56),  # 3 steps: C(8, 5)
        (8, 100, 72),  # two layers of 2 steps: 36 + 36
        (10, 275, 275),  # Deb, Jain 2014, table I has 3 and 2 steps: 220 + 55
    ],
)
def test_as_many_even_directions_as_fit(objectives, size, count):
    found = directions_of(objectives, size, "das-dennis")
    assert found.shape == (count, objectives)
    assert found.sum(axis=1) == pytest.approx(np.ones(count))
    assert len(np.unique(found.round(9), axis=0)) == count
    assert found.min() >= 0


@pytest.mark.slow
def test_directions_that_push_one_another_are_as_many_as_wanted_and_the_same_each_time():
    from dse.optimizers.evolutionary.reference_directions import _compute_directions

    found = directions_of(3, 8, "energy")
    _compute_directions.cache_clear()
    assert (directions_of(3, 8, "energy") == found).all()
    assert found.shape == (8, 3)


def test_unknown_directions_are_told_with_the_nearest():
    with pytest.raises(PluginError) as raised:
        directions_of(3, 20, "das-denis")
    assert raised.value.hint == "did you mean 'das-dennis'?"


@pytest.mark.parametrize(("objectives", "size"), [(2, 24), (5, 35), (6, 56), (10, 128)])
def test_the_population_grows_with_the_number_of_objectives(objectives, size):
    assert directed_population(dtlz2(objectives, extra=1).problem, None) == size


def test_fewer_parents_than_objectives_are_refused():
    with pytest.raises(PluginError, match="pop_size 5"):
        directed_population(dtlz2(6).problem, 5)
