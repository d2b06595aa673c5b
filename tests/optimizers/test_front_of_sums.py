from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from dse.core.pareto import nondominated
from dse.optimizers.separable import front_of_sums as module
from dse.optimizers.separable.front_of_sums import front_of_sums


def brute_force(tables: list[np.ndarray]) -> np.ndarray:
    every = np.array([sum(rows) for rows in product(*tables)])
    return np.unique(every[nondominated(every)].round(9), axis=0)


@pytest.mark.parametrize("losses", [1, 2, 3])
def test_it_is_the_front_of_all_combinations(losses: int) -> None:
    rng = np.random.default_rng(losses)
    tables = [rng.random((rows, losses)).round(1) for rows in (3, 4, 2, 5, 3)]
    found = front_of_sums(tables)
    assert found.exact
    assert np.unique(found.sums.round(9), axis=0) == pytest.approx(brute_force(tables))


def test_the_chosen_rows_have_the_sums() -> None:
    rng = np.random.default_rng(7)
    tables = [rng.random((4, 2)) for _ in range(6)]
    found = front_of_sums(tables)
    added = sum(table[found.rows[:, place]] for place, table in enumerate(tables))
    assert added == pytest.approx(found.sums)


def test_more_partial_sums_than_are_kept_are_thinned_evenly_and_stated(monkeypatch) -> None:
    monkeypatch.setattr(module, "MOST", {2: 16})
    rng = np.random.default_rng(8)
    found = front_of_sums([rng.random((6, 2)) for _ in range(8)])
    assert not found.exact
    assert len(found.sums) <= 16
    assert nondominated(found.sums).all()


def test_a_thinned_front_keeps_its_ends() -> None:
    rng = np.random.default_rng(9)
    found = front_of_sums([rng.random((6, 2)) for _ in range(6)])
    few = found.thinned(5)
    assert len(few.sums) == 5
    assert few.sums.min(axis=0) == pytest.approx(found.sums.min(axis=0))
