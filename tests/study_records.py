"""Hypothesis strategies for complete study records: any that a storage can hold, even absurd."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, get_args

from hypothesis import strategies as st

from dse.core.design import Design
from dse.core.metric import Failure, FailureKind
from dse.core.trial import Asked, Attempt, Driver, Event, Outcome, Report, State, Trial
from dse.interop.archive.study_record import Record

_NAMES = st.text(min_size=1, max_size=6)
_WORDS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=6)
_TEXTS = st.text(st.characters(exclude_categories=()), max_size=8)  # lone surrogates too
_NUMBERS = st.floats(allow_nan=False, allow_infinity=False)
_VALUES = st.one_of(st.booleans(), st.integers(), _NUMBERS, _TEXTS)
_METRICS = st.dictionaries(_NAMES, _NUMBERS, max_size=3)
_PLAIN = st.recursive(
    st.one_of(st.none(), _VALUES),
    lambda inner: st.one_of(
        st.lists(inner, max_size=2), st.dictionaries(_NAMES, inner, max_size=2)
    ),
    max_leaves=6,
)
_FAULTS = st.builds(Failure, kind=st.sampled_from(get_args(FailureKind)), reason=_TEXTS)
_COSTS = st.floats(0, 1e9)
_ENDS = sorted(state for state in State if state.finished)


@st.composite
def records(draw: Any, most: int = 8) -> Record:
    """Generate the record of a study of up to ``most`` trials, with asks, reports and events."""
    drivers = tuple(draw(st.lists(_drivers(), max_size=3)))
    asks = draw(_asks(most, len(drivers)))
    count = sum(ask.count for ask in asks)
    attempts = (
        _count_repeats(draw(st.lists(st.integers(0, count - 1), max_size=4))) if count else []
    )
    trials = [
        draw(_trials(number, ask.told, sum(n == number for n, _ in attempts), len(drivers)))
        for ask in asks
        for number in range(ask.first, ask.first + ask.count)
    ]
    numbers = st.integers(0, count - 1) if count else st.nothing()
    report = st.builds(
        Report,
        number=numbers,
        step=st.integers(-5, 99),
        metrics=_METRICS,
        worker=_workers(len(drivers)),
    )
    ended = [trial.number for trial in trials if trial.state.finished]
    return Record(
        study=draw(_NAMES),
        spec=draw(st.dictionaries(_NAMES, _PLAIN, max_size=4)),
        trials=tuple(trials),
        finished_order=tuple(draw(st.permutations(ended))),
        events=tuple(draw(st.lists(_EVENTS, max_size=3))),
        asks=tuple(asks),
        attempts=tuple(
            Attempt(number=n, attempt=a, failure=draw(st.none() | _FAULTS), cost_s=draw(_COSTS))
            for n, a in attempts
        ),
        reports=tuple(draw(st.lists(report, max_size=3))) if count else (),
        drivers=tuple(replace(one, id=place) for place, one in enumerate(drivers)),
    )


_EVENTS = st.builds(Event, kind=_WORDS, text=_TEXTS, told=st.integers(0, 9))


def _drivers() -> st.SearchStrategy[Driver]:
    return st.builds(
        Driver,
        host=_WORDS,
        pid=st.integers(0, 1 << 22),
        started=_WORDS,
        left=st.just(True),
        provenance=st.dictionaries(_NAMES, _TEXTS, max_size=2),
    )


@st.composite
def _asks(draw: Any, most: int, drivers: int) -> list[Asked]:
    asks: list[Asked] = []
    first = 0
    for count in draw(st.lists(st.integers(0, 3), max_size=4)):
        if first + count > most:
            break
        asks.append(
            Asked(
                first=first,
                count=count,
                wanted=draw(st.none() | st.integers(0, 9)),
                told=draw(st.integers(0, 9)),
                seconds=draw(_COSTS),
                by=draw(_WORDS),
                worker=draw(_workers(drivers)),
            )
        )
        first += count
    return asks


@st.composite
def _trials(draw: Any, number: int, told: int, attempts: int, drivers: int) -> Trial:
    design = Design(draw(st.dictionaries(_NAMES, _VALUES, max_size=4)))
    trial = Trial(number=number, design=design, told=told, attempts=attempts)
    if draw(st.booleans()):
        return trial
    outcome = Outcome(
        state=draw(st.sampled_from(_ENDS)),
        metrics=draw(_METRICS),
        spread=draw(_METRICS),
        failure=draw(st.none() | _FAULTS),
        cost_s=draw(_COSTS),
        measured=draw(st.integers(0, 3)),
    )
    return trial.finished(outcome, draw(_workers(drivers)))


def _workers(drivers: int) -> st.SearchStrategy[int | None]:
    return st.none() | st.integers(0, drivers - 1) if drivers else st.none()


def _count_repeats(numbers: list[int]) -> list[tuple[int, int]]:
    """Pair each trial number with the number of its earlier occurrences."""
    return [(number, numbers[:place].count(number)) for place, number in enumerate(numbers)]
