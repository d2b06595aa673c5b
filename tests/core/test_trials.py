"""Trials as columns are the same trials."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dse.core.design import Design
from dse.core.metric import Failure
from dse.core.trial import Outcome, State, Trial
from dse.core.trials import Trials, are, column_of

DESIGNS = [
    Design({"tp": 1, "format": "int8"}),
    Design({"tp": 2, "on": True}),
    Design({"tp": 2.5}),
    Design({"tp": 4, "format": "fp8"}),
]
ASKED = [Trial(number=number, design=design, told=3) for number, design in enumerate(DESIGNS)]
TRIALS = [
    ASKED[0].finished(
        Outcome(state=State.DONE, metrics={"a": 0.1, "b": -0.0}, spread={"a": 1e-3}, cost_s=2.0)
    ),
    ASKED[1].held(7),
    ASKED[2].finished(Outcome(state=State.FAILED, failure=Failure(kind="crashed", reason="why"))),
    ASKED[3].freed(attempts=2).finished(Outcome(state=State.DONE, metrics={"b": 4.0}, measured=1)),
]
HELD = Trials.of(TRIALS, order=[3, 0, 2])

outcomes = st.builds(
    Outcome,
    state=st.sampled_from([state for state in State if state.finished]),
    metrics=st.dictionaries(st.sampled_from("abc"), st.floats(allow_nan=False)),
    spread=st.dictionaries(st.sampled_from("ab"), st.floats(0, 1)),
    failure=st.none() | st.builds(Failure, kind=st.just("crashed"), reason=st.text()),
    cost_s=st.floats(0, 1e9),
    measured=st.integers(0, 9),
)


@given(st.lists(outcomes, max_size=9))
def test_columns_give_the_trials_that_they_were_made_of(found: list[Outcome]) -> None:
    trials = [
        Trial(number=number, design=DESIGNS[number % 4]).finished(outcome)
        for number, outcome in enumerate(found)
    ]
    assert Trials.of(trials) == trials
    assert [Trials.of(trials)[place] for place in range(len(trials))] == trials


def test_columns_keep_times_though_trials_that_differ_by_them_alone_are_equal() -> None:
    timed = replace(TRIALS[1], asked_at=1.5, begun_at=2.5)
    ended = TRIALS[1].finished(Outcome(state=State.DONE, begun_at=3.5, finished_at=4.5))
    held = Trials.of([timed, TRIALS[1], ended])
    assert [(t.asked_at, t.begun_at, t.finished_at) for t in (*held, held[0])] == [
        (1.5, 2.5, None),
        (None, None, None),
        (None, 3.5, 4.5),
        (1.5, 2.5, None),
    ]
    assert timed == TRIALS[1]
    assert timed.freed().begun_at is None


@pytest.mark.parametrize(
    "cut", [slice(None), slice(1, 3), slice(-2, None), slice(None, None, -1), slice(9, 12)]
)
def test_a_part_of_the_columns_is_a_part_of_the_trials(cut: slice) -> None:
    assert HELD[cut] == TRIALS[cut]


@pytest.mark.parametrize("place", [-5, 4])
def test_there_is_no_trial_beyond_the_last(place: int) -> None:
    with pytest.raises(IndexError):
        HELD[place]


def test_columns_are_what_they_hold_and_not_a_list_of_others() -> None:
    assert TRIALS == HELD
    assert TRIALS[:3] != HELD
    assert HELD != "four"
    assert TRIALS[2] in HELD
    assert repr(Trials.of([])) == "Trials([])"


def test_what_is_finished_stands_in_the_order_in_which_it_ended() -> None:
    assert HELD.finished == [TRIALS[3], TRIALS[0], TRIALS[2]]
    assert HELD.over.tolist() == [True, False, True, True]


def test_states_are_counted_and_asked_for() -> None:
    assert HELD.counts == {State.RUNNING: 1, State.DONE: 2, State.FAILED: 1}
    assert HELD.are(State.DONE).tolist() == are(TRIALS, State.DONE).tolist()


@pytest.mark.parametrize("name", ["a", "b", "c", "tp", "format", "on"])
def test_a_column_is_the_same_from_columns_and_from_a_list(name: str) -> None:
    whole, each = HELD.column(name), column_of(TRIALS, name)
    assert whole.values.tolist() == each.values.tolist()
    np.testing.assert_array_equal(whole.absent, each.absent)


def test_columns_of_columns_are_they_themselves() -> None:
    assert Trials.of(HELD) is HELD
