"""Precondition checks that all storages share, with the same error messages."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping

from dse.core.trial import Ask, History, Outcome, Report, State
from dse.errors import Overtaken, StorageError, StudyError, nearest


def missing(study: str, known: Collection[str]) -> StudyError:
    """Return the error for a study that does not exist in the storage."""
    return StudyError(f"there is no study {study!r}", hint=nearest(study, known))


def taken(study: str) -> StudyError:
    """Return the error for a study name that is already used in the storage."""
    return StudyError(
        f"there is a study {study!r} already", hint="resume it, delete it or use another name"
    )


def no_driver(study: str, number: int) -> StudyError:
    """Return the error for a driver (process that runs a study) that never joined the study."""
    return StudyError(f"no driver {number} ever entered the study {study!r}")


def check_turn(study: str, ask: Ask, trials: int, asker: int | None, term: int) -> None:
    """Check that a driver (process that runs the study) may add designs that it has requested.

    Args:
        study: the study's name, for the message.
        ask: the driver's request to the optimizer that the designs come from.
        trials: the study's number of trials.
        asker: the only driver that may request designs; ``None`` if there is none.
        term: the number of the asker's term; without an asker, of the term of the last asker.

    Raises:
        Overtaken: the study has another number of trials than the request expects, or another
            driver is the asker, the only driver that may request designs.
    """
    if ask.after is not None and ask.after != trials:
        raise Overtaken(
            f"the study {study!r} has {trials} trials and not {ask.after}",
            hint="another process added trials: read them and request designs again",
        )
    if ask.term is not None and (ask.term, ask.worker) != (term, asker):
        raise Overtaken(
            f"driver {ask.worker} is not the asker of the study {study!r} in term {ask.term}",
            hint="another process has taken over, since no heartbeat arrived in time",
        )
    if ask.term is None and asker is not None and ask.worker not in (None, asker):
        raise Overtaken(
            f"driver {asker} asks for the study {study!r}, and not driver {ask.worker}",
            hint="wait for its designs, or until it counts as lost",
        )


def check_trials_exist(
    study: str, numbers: Collection[int], states: Mapping[int, State | None]
) -> None:
    """Raise StudyError unless all trials with these numbers exist.

    Raises:
        StudyError: a number is unknown.
    """
    for number in numbers:
        if states.get(number) is None:
            raise StudyError(f"the study {study!r} has no trial {number}")


def check_trials_open(
    study: str, numbers: Collection[int], states: Mapping[int, State | None]
) -> None:
    """Raise StudyError unless all trials with these numbers exist and are unfinished.

    Args:
        study: the study's name, for the message.
        numbers: the numbers of the trials to change.
        states: the present states of at least the existing trials among them.

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
    """Check that every outcome has a final state and finite numbers only.

    Raises:
        StudyError: a state is not final.
        StorageError: a number is infinite or NaN.
    """
    for number, outcome in outcomes.items():
        if not outcome.state.finished:
            raise StudyError(f"trial {number} cannot end as {outcome.state.value}")
        check_finite(number, outcome)


def check_history(history: History) -> None:
    """Check that an imported history is consistent.

    Raises:
        StudyError: the trials' numbers have a gap, or ``order`` does not contain each finished
            trial once.
        StorageError: a number is infinite or NaN.
    """
    if [trial.number for trial in history.trials] != list(range(len(history.trials))):
        raise StudyError("the trials of a history are not numbered from 0 on")
    ended = {trial.number: trial.outcome for trial in history.trials if trial.state.finished}
    if sorted(history.order) != list(ended):
        raise StudyError("the order of a history does not contain each finished trial once")
    check_outcomes(ended)
    check_reports(history.reports)


def check_finite(number: int, outcome: Outcome) -> None:
    """Check that the numbers of an outcome are finite.

    Raises:
        StorageError: a number is infinite or NaN.
    """
    numbers = {**outcome.metrics, **{f"spread of {k}": v for k, v in outcome.spread.items()}}
    _check_numbers(number, {**numbers, "cost_s": outcome.cost_s})


def check_reports(reports: Collection[Report]) -> None:
    """Check that the metrics in reports of running trials are finite.

    Raises:
        StorageError: a number is infinite or NaN.
    """
    for report in reports:
        _check_numbers(report.number, report.metrics)


def check_waiting(to: State) -> None:
    """Check that a state is pending or running, as the state of an unfinished trial has to be.

    Raises:
        StudyError: the state is final.
    """
    if to.finished:
        raise StudyError(f"a trial cannot be moved to {to.value}", hint="finish it instead")


def _check_numbers(number: int, numbers: Mapping[str, float]) -> None:
    for name, value in numbers.items():
        if not math.isfinite(value):
            raise StorageError(
                f"trial {number}: {name} is {value}",
                hint="report a failure, not a number, for a design that cannot be measured",
            )
