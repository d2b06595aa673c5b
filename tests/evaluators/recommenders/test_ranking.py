"""Quality of ranking in stages, on a table of likes of two tastes and against sums by hand."""

from __future__ import annotations

import numpy as np
import pytest

from dse.core.batch import Batch
from dse.errors import PluginError, SpecError
from dse_evaluators.recommenders.factor_models import TRAININGS, train_factors
from dse_evaluators.recommenders.ranking import Ranking, judge_ranking

USERS, ITEMS = 30, 24


@pytest.fixture
def likes(tmp_path):
    rng = np.random.default_rng(1)
    near = (np.arange(USERS) % 2)[:, None] == (np.arange(ITEMS) % 2)
    liked = rng.random((USERS, ITEMS)) < np.where(near, 0.6, 0.02)
    path = tmp_path / "likes.csv"
    rows = "\n".join(f"u{user},i{item:02}" for user, item in np.argwhere(liked))
    path.write_text(f"user,item\n{rows}\n")
    return str(path)


def test_more_items_are_no_worse_and_stages_that_pass_all_on_change_nothing(likes):
    made = Ranking(ratings=likes, shown=6)
    designs = [{"model_1": "small", "items_1": count} for count in (6, 12, 24)]
    two = {"stages": 2, "model_1": "medium", "items_1": 24, "model_2": "small", "items_2": 23}
    found = made.evaluate(Batch.of([*designs, two]))
    few, half, every, passed = found.columns["ndcg"]
    assert few < half < every
    assert passed == pytest.approx(every, abs=0.01)
    assert (found.spread["ndcg"] > 0).all()
    assert every > 0.3  # a third of that is found by chance


def test_gain_is_that_of_the_formula():
    likes = np.array([[1.0, 0, 1, 0], [0, 0, 0, 0], [0, 1, 0, 0]])
    shown = np.array([[1, 0], [0, 1], [1, 2]])
    found = judge_ranking(shown, likes, 2)
    second = 1 / np.log2(3)
    np.testing.assert_allclose(found, [second / (1 + second), 1])


def test_factors_solve_their_equations():
    likes = (np.random.default_rng(0).random((9, 7)) < 0.4).astype(float)
    training = TRAININGS["small"]
    users, items = train_factors(likes, training)
    weights = 1 + training.weight * likes  # (u, i)
    # the items are the last that were solved
    for item, factors in enumerate(items):
        matrix = (users * weights[:, item, None]).T @ users + training.decay * np.eye(4)
        np.testing.assert_allclose(matrix @ factors, users.T @ (weights * likes)[:, item])


@pytest.mark.parametrize(
    ("design", "reason"),
    [
        ({"items_1": 25}, "items_1 is 25, and there are 24 items"),
        ({"stages": 2, "items_1": 20, "items_2": 20}, "a stage ranks 20 items"),
    ],
)
def test_a_funnel_that_cannot_be_is_infeasible(likes, design, reason):
    assert reason in Ranking(ratings=likes).evaluate(Batch.of([design])).failures[0].reason


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("user,movie\n1,2\n", "has no column 'item'"),
        ("user,item\n1,2\n1,3\n", "has 2 likes of 1 users"),
        ("user,item\n1,2\n,3\n", "row 2: user is empty"),
    ],
)
def test_a_table_without_likes_is_one_error(tmp_path, text, problem):
    path = tmp_path / "likes.csv"
    path.write_text(text)
    with pytest.raises(SpecError, match=problem):
        Ranking(ratings=str(path)).check_values({})


def test_a_wrong_split_is_refused():
    with pytest.raises(PluginError, match="there is no split 'train'"):
        Ranking(split="train")
