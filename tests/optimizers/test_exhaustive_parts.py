"""Parts of an enumeration, joined in any order, hold the front that comparing every pair leaves."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from dse.optimizers.exact.running_front import RunningFront, found_in
from dse.testing.known import beaten

losses = arrays(float, st.tuples(st.integers(1, 60), st.just(3)), elements=st.integers(0, 4))


def part(rows, start, stop, beaters):
    return found_in(
        rows[start:stop],
        np.zeros(stop - start),
        np.ones(stop - start, dtype=bool),
        first=start,
        beaters=beaters,
    )


@given(losses, st.integers(0, 60))
def test_two_parts_hold_the_front_and_of_equals_the_first(rows, cut):
    cut = min(cut, len(rows))
    first = part(rows, 0, cut, np.zeros((0, 3)))
    second = part(rows, cut, len(rows), rows[:cut][::2])
    distinct = np.sort(np.unique(rows, axis=0, return_index=True)[1])
    wanted = distinct[~beaten(rows[distinct])]
    assert first.joined(second).places.tolist() == wanted.tolist()
    assert second.joined(first).places.tolist() == wanted.tolist()


@given(losses)
def test_nothing_joined_changes_nothing(rows):
    found = part(rows, 0, len(rows), np.zeros((0, 3)))
    assert RunningFront.nothing(3).joined(found).places.tolist() == found.places.tolist()


def test_where_no_design_keeps_the_limits_the_one_that_breaks_them_least_is_known():
    def one(first, violations, possible):
        return found_in(
            np.zeros((3, 2)),
            np.array(violations),
            np.array(possible),
            first=first,
            beaters=np.zeros((0, 2)),
        )

    early, late = one(0, [3.0, 2.0, 0.5], [True, True, False]), one(3, [2.0, 4.0, 9.0], [True] * 3)
    assert (late.joined(early).least, late.joined(early).violation) == (1, 2.0)
    assert late.joined(early).feasible == 0
