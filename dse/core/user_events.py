"""Events that survive a copy of trials: attributes, answers, and results on a test split."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from dse.core.attributes import KIND, renumbered
from dse.core.judged_trials import JUDGED, renumber_judged
from dse.core.preference_answers import (
    PREFERENCE,
    TOWARD,
    WITHDRAWN,
    PreferenceAnswer,
    read_answers,
    read_steering,
)
from dse.core.trial import Event

USER_KINDS = frozenset({KIND, PREFERENCE, WITHDRAWN})
"""Kinds of the events that users cause."""


def renumber_trials(events: Sequence[Event], number: Mapping[int, int]) -> Iterator[Event]:
    """Renumber the trials that a record's events name, for a copy of the study.

    Attributes, preference answers, test-split results and requests to steer that name a trial
    without a new number are left out. Answers that were withdrawn or replaced by a later one are
    left out, too, with their withdrawals: a withdrawal names an answer by its position, which
    changes. Events of other kinds are unchanged.

    Args:
        events: all events of the record, oldest first.
        number: new numbers of the trials by their old numbers.
    """
    answers = {answer.number: answer for answer in read_answers(events)}
    count = 0
    for event in events:
        if event.kind == PREFERENCE:
            valid = PreferenceAnswer.parse(event.text) is not None
            count += valid
            answer = answers.get(count) if valid else None
            if answer and {answer.first, answer.second} <= number.keys():
                first, second = number[answer.first], number[answer.second]
                yield replace(event, text=replace(answer, first=first, second=second).text)
        elif event.kind == JUDGED:
            if (judged := renumber_judged(event, number)) is not None:
                yield judged
        elif event.kind == TOWARD:
            moves = [one.renumber(number) for one in read_steering([event])]
            yield from (replace(event, text=one.text) for one in moves if one is not None)
        elif event.kind != WITHDRAWN and (moved := renumbered(event, number)) is not None:
            yield moved


def carry_user_events(
    events: Sequence[Event], number: Mapping[int, int], finished: int
) -> list[Event]:
    """Return the attributes, answers and test-split results of a record, for a new record.

    The new record has other trial numbers. Results on a test split stay valid, because the same
    evaluators measured the trials.

    Args:
        events: all events of the old record, oldest first.
        number: numbers of the trials in the new record by their old numbers.
        finished: number of finished trials with which the new record begins.
    """
    own = [event for event in events if event.kind in {*USER_KINDS, JUDGED}]
    return [replace(event, told=finished) for event in renumber_trials(own, number)]
