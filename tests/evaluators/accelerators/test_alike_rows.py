"""Rows that have some knobs alike."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dse_evaluators.accelerators.training.alike_rows import alike

VALUES = st.lists(st.tuples(st.sampled_from([0.0, 1.5, 2.0]), st.integers(0, 2)), max_size=40)


@given(VALUES)
def test_each_row_is_like_the_one_that_stands_for_it(pairs):
    columns = [np.array([float(pair[side]) for pair in pairs]) for side in (0, 1)]
    found = alike(columns)
    assert len(found.rows) == len(set(pairs))
    assert [pairs[found.rows[place]] for place in found.place] == pairs


@given(VALUES, st.integers(1, 7))
def test_the_chunks_hold_every_row_once(pairs, most):
    columns = [np.array([float(pair[side]) for pair in pairs]) for side in (0, 1)]
    seen = [
        (int(row), pairs[some[at]])
        for some, pieces in alike(columns).chunks(most)
        for rows, place in pieces
        for row, at in zip(rows, place, strict=True)
    ]
    assert sorted(seen) == list(enumerate(pairs))
