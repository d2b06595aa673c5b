"""Checks that all storages share, so that their messages agree."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping

from dse.core.trial import Ask, History, Outcome, Report, State
from dse.errors import Overtaken, StorageError, StudyError, nearest


def missing(study: str, known: Collection[str]) -> StudyError:
    """The error for a study that does not exist."""
    return StudyError(f"there is no study {study!r}", hint=nearest(study, known))


def taken(study: str) -> StudyError:
    """The error for a study that exists already."""
    return StudyError(
        f"there is a study {study!r} already", hint="go on with it, delete it or take another name"
    )


def no_driver(study: str, number: int) -> StudyError:
    """The error for a driver that never entered."""
    return StudyError(f"no driver {number} ever entered the study {study!r}")


def check_turn(study: str, ask: Ask, trials: int, asker: int | None, term: int) -> None:
    """Nothing, if the ask may be kept.

    Args:
        study: for the message.
        ask: the ask.
        trials: how many the study has.
        asker: the driver that is the asker; ``None`` where nobody is.
        term: of the asker, or of the last one.

    Raises:
        Overtaken: the study has more trials than who asked believes, or was begun anew, or it is
            another driver's turn to ask.
    """
    if ask.after is not None and ask.after != trials:
        raise Overtaken(
            f"the study {study!r} has {trials} trials and not {ask.after}",
            hint="another process added some: look at them and ask again",
        )
    if ask.term is not None and (ask.term, ask.worker) != (term, asker):
        raise Overtaken(
            f"driver {ask.worker} is not the asker of the study {study!r} in term {ask.term}",
            hint="another process was slow to hear from it and asks by now",
        )
    if ask.term is None and asker is not None and ask.worker not in (None, asker):
        raise Overtaken(
            f"driver {asker} asks for the study {study!r}, and not driver {ask.worker}",
            hint="wait for its designs, or until it is lost",
        )


def check_trials_exist(
    study: str, numbers: Collection[int], states: Mapping[int, State | None]
) -> None:
    """Raise StudyError unless there is a trial of each number.

    Raises:
        StudyError: a number is unknown.
    """
    for number in numbers:
        if states.get(number) is None:
            raise StudyError(f"the study {study!r} has no trial {number}")


def check_trials_open(
    study: str, numbers: Collection[int], states: Mapping[int, State | None]
) -> None:
    """Raise StudyError unless all numbers are of unfinished trials.

    Args:
        study: For the message.
        numbers: What a caller wants to change.
        states: The present states of at least those trials that exist.

    Raises:
        StudyError: a number is unknown, or its trial is finished.
    """
    check_trials_exist(study, numbers, states)
    for number in numbers:
        state = states[number]
        assert state is not None
        if state.finished:
            raise StudyError(
                f"trial {number} of {study!r} is {state.value} already",
                hint="is another process running the same study?",
            )


def check_outcomes(outcomes: Mapping[int, Outcome]) -> None:
    """Nothing, if every outcome is an end and holds finite numbers only.

    Raises:
        StudyError: a state is none that a trial can end in.
        StorageError: a number is infinite or not a number.
    """
    for number, outcome in outcomes.items():
        if not outcome.state.finished:
            raise StudyError(f"trial {number} cannot end as {outcome.state.value}")
        check_finite(number, outcome)


def check_history(history: History) -> None:
    """Nothing, if the history is one that a storage could have kept.

    Raises:
        StudyError: its numbers have a gap, or its order is not that of what is finished.
        StorageError: a number is infinite or not a number.
    """
    if [trial.number for trial in history.trials] != list(range(len(history.trials))):
        raise StudyError("the trials of a history are not numbered from 0 on")
    ended = {trial.number: trial.outcome for trial in history.trials if trial.state.finished}
    if sorted(history.order) != list(ended):
        raise StudyError("the order of a history does not hold each finished trial once")
    check_outcomes(ended)
    check_reports(history.reports)


def check_finite(number: int, outcome: Outcome) -> None:
    """Nothing, if the outcome holds finite numbers only.

    Raises:
        StorageError: one is infinite or not a number.
    """
    told = {**outcome.metrics, **{f"spread of {k}": v for k, v in outcome.spread.items()}}
    _check_numbers(number, {**told, "cost_s": outcome.cost_s})


def check_reports(reports: Collection[Report]) -> None:
    """Nothing, if the reports hold finite numbers only.

    Raises:
        StorageError: one is infinite or not a number.
    """
    for report in reports:
        _check_numbers(report.number, report.metrics)


def check_waiting(to: State) -> None:
    """Nothing, if the state is one of an unfinished trial.

    Raises:
        StudyError: it is not.
    """
    if to.finished:
        raise StudyError(f"a trial cannot be moved to {to.value}", hint="finish it instead")


def _check_numbers(number: int, told: Mapping[str, float]) -> None:
    for name, value in told.items():
        if not math.isfinite(value):
            raise StorageError(
                f"trial {number}: {name} is {value}",
                hint="a design that cannot be measured has a fault, not a number",
            )
