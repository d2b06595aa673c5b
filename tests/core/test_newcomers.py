"""Who was on the front when it came, against looking at every earlier row."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from dse.core.pareto import hypervolume, newcomers, nondominated, volumes_of

few = st.integers(0, 4).map(float)


def by_looking(losses) -> list[int]:
    return [
        place for place, row in enumerate(losses) if not (losses[:place] <= row).all(axis=1).any()
    ]


@given(
    st.integers(1, 4).flatmap(
        lambda m: arrays(float, st.tuples(st.integers(0, 25), st.just(m)), elements=few)
    )
)
def test_a_newcomer_is_as_good_as_no_earlier_row(losses) -> None:
    assert newcomers(losses).tolist() == by_looking(losses)


@given(arrays(float, st.tuples(st.integers(1, 25), st.just(3)), elements=few))
def test_the_front_of_the_newcomers_is_the_front_of_all(losses) -> None:
    came = losses[newcomers(losses)]
    of_all, of_came = losses[nondominated(losses)], came[nondominated(came)]
    assert sorted(map(tuple, of_all)) == sorted(map(tuple, of_came))


@given(arrays(float, st.tuples(st.integers(1, 20), st.just(2)), elements=few))
def test_volumes_are_those_of_the_first_so_many(losses) -> None:
    came, point = losses[newcomers(losses)], np.array([3.0, 3.0])
    wanted = [hypervolume(came[: place + 1], point) for place in range(len(came))]
    np.testing.assert_allclose(volumes_of(came, point), wanted)


def test_volumes_of_very_many_are_measured_now_and_then_and_are_never_too_much(monkeypatch) -> None:
    across = np.random.default_rng(0).permutation(np.linspace(0.0, 1.0, 400))
    losses, point = np.column_stack([across, 1.0 - across]), np.array([1.1, 1.1])
    every = volumes_of(losses, point)
    monkeypatch.setattr("dse.core.pareto.MOST_EACH", 141)
    some = volumes_of(losses, point)
    known = np.flatnonzero(some == every)
    assert len(known) >= 49
    assert known[-1] == 399
    assert np.diff(known).max() < 15
    assert (some <= every).all()
    assert (np.diff(some) >= 0).all()


def test_a_single_objective_has_the_volume_of_its_best() -> None:
    assert volumes_of(np.array([[5.0], [2.0], [1.0]]), np.array([4.0])).tolist() == [0.0, 2.0, 3.0]


@pytest.mark.slow
@pytest.mark.parametrize("objectives", [2, 3])
def test_of_a_million_rows_few_are_newcomers(objectives: int) -> None:
    losses = np.random.default_rng(0).random((1_000_000, objectives))
    came = newcomers(losses)
    assert 50 < len(came) < 1_000
