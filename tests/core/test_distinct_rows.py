"""Rows that agree in some columns are found and stand for one another."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from dse.core.batch import Batch, Column

codes = arrays(np.int32, (40, 2), elements=st.integers(-1, 2))


def batch_of(rows):
    return Batch(
        {
            name: Column.coded((10, 20, 30), rows[:, place].astype(np.int32))
            for place, name in enumerate("ab")
        },
        len(rows),
    )


@given(codes)
def test_each_row_is_like_the_row_that_stands_for_it(rows):
    among = batch_of(rows).distinct("ab")
    assert among.spread(rows[among.rows].T).T.tolist() == rows.tolist()


@given(codes)
def test_no_two_rows_that_stand_for_others_agree(rows):
    among = batch_of(rows).distinct("ab")
    standing = rows[among.rows]
    assert among.place is None or len(np.unique(standing, axis=0)) == len(standing)


def test_columns_that_are_not_named_and_names_without_a_column_make_no_difference():
    rows = np.array([[0, place % 3] for place in range(12)])
    assert len(batch_of(rows).distinct("ac").rows) == 1


def test_a_column_without_codes_makes_every_row_another():
    assert Batch({"a": Column(np.zeros(9))}, 9).distinct("a").place is None


def test_where_most_rows_differ_every_row_stands_for_itself():
    rows = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
    among = batch_of(rows).distinct("ab")
    assert among.place is None
    assert among.rows.tolist() == [0, 1, 2, 3]


def test_no_rows_are_no_trouble():
    assert len(batch_of(np.zeros((0, 2))).distinct("ab").rows) == 0


@pytest.mark.parametrize(("found", "spread"), [({}, {}), ({1: "x"}, {1: "x", 3: "x"})])
def test_what_was_found_for_one_row_holds_for_all_like_it(found, spread):
    among = batch_of(np.array([[place % 2, 0] for place in range(4)])).distinct("a")
    assert among.rows.size == 2
    assert set(among.spread_rows(found)) == set(spread)
