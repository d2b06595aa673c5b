"""Tables, hashed MLPs and both, trained on items that all like or none; and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from dse.core.batch import Batch
from dse.errors import PluginError, SpecError
from dse_evaluators.recommenders.interactions import load_interactions
from dse_evaluators.recommenders.representation import RepresentationQuality
from dse_evaluators.recommenders.representations import Representation, hash_values

USERS, ITEMS = 24, 20
KNOBS = {"dim": 4, "hashes": 16, "width": 8, "layers": 1}


@pytest.fixture
def ratings(tmp_path):
    path = tmp_path / "ratings.csv"
    rows = "\n".join(
        f"u{user},i{item:02},{2 + 3 * (item % 2)}" for user, item in np.ndindex(USERS, ITEMS)
    )
    path.write_text(f"user,item,rating\n{rows}\n")
    return str(path)


def test_all_representations_learn_what_is_liked_and_bytes_are_exact(ratings):
    made = RepresentationQuality(ratings=ratings, epochs=6, knobs=KNOBS)
    kinds = [{"representation": one} for one in ("table", "hash", "hybrid")]
    found = made.evaluate(Batch.of(kinds))
    assert not found.failures
    assert (found.columns["auc"] > 0.9).all()
    mlp = 4 * (16 * 8 + 8 + 8 * 4 + 4) + 8 * 16
    table = 4 * 4 * (USERS + ITEMS)
    np.testing.assert_array_equal(
        found.columns["embedding_size"], [table, 2 * mlp, table + 2 * mlp]
    )
    dense = (2 * 64 + 65 * 4) + (8 * 128 + 129 * 64 + 65)  # 3 products beside a vector of 4
    assert found.columns["size"][0] == table + 4 * dense
    np.testing.assert_array_equal(found.columns["operations"], [0, 4 * (128 + 32), 4 * (128 + 32)])


def test_hashed_numbers_are_alike_for_equal_values_and_spread_evenly():
    found = hash_values(np.array([7, 8, 7, *range(1000)]), 64, feature=0)
    np.testing.assert_array_equal(found[0], found[2])
    assert not (found[0] == found[1]).any()
    assert abs(float(found.mean())) < 0.02
    assert float(found.std()) == pytest.approx(1 / np.sqrt(3), rel=0.02)
    assert not (hash_values(np.array([7]), 64, feature=1) == found[0]).any()


def test_a_hash_needs_no_more_bytes_for_more_values():
    form = Representation("hash", 8, 32, 16, 2)
    assert form.count_bytes(10) == form.count_bytes(10**9)
    assert form.count_flops() == 2 * (32 * 16 + 16 * 16 + 16 * 8)


def test_the_last_of_several_ratings_of_a_pair_counts(tmp_path):
    path = tmp_path / "ratings.csv"
    first = [f"{user},{item},1" for user in range(10) for item in range(5)]
    last = [f"{user},{item},{5 if user % 2 else 2}" for user in range(10) for item in range(5)]
    path.write_text("\n".join(["user,item,rating", *first, *last]))
    found = load_interactions(str(path), 4)
    splits = (found.train, found.search, found.test)
    assert sum(len(one.liked) for one in splits) == 50
    assert all((one.liked == one.ids[:, 0] % 2).all() for one in splits)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("user,item,stars\n1,2,3\n", "has no column 'rating'"),
        ("user,item,rating\n1,2,3\n", "has 1 ratings"),
        ("user,item,rating\n1,2,x\n", ":2: rating is 'x'"),
        (
            "user,item,rating\n" + "".join(f"{row},a,3\n" for row in range(30)),
            "0% of the ratings of the training split are 4 or more",
        ),
    ],
)
def test_a_table_without_ratings_is_one_error(tmp_path, text, problem):
    path = tmp_path / "ratings.csv"
    path.write_text(text)
    with pytest.raises(SpecError, match=problem):
        RepresentationQuality(ratings=str(path)).check_values({})


def test_options_without_effect_are_refused(ratings):
    with pytest.raises(PluginError, match="liked has no effect on movielens"):
        RepresentationQuality(liked=3)
    made = RepresentationQuality(ratings=ratings)
    found = made.evaluate(Batch.of([{"representation": "table", "width": 8}]))
    assert "width has no effect with a table" in found.failures[0].reason
