"""What every storage refuses, said in one place so that all say the same."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping

from dse.core.trial import Outcome, State
from dse.errors import StorageError, StudyError, nearest


def missing(study: str, known: Collection[str]) -> StudyError:
    """The error for a study that does not exist."""
    return StudyError(f"there is no study {study!r}", hint=nearest(study, known))


def taken(study: str) -> StudyError:
    """The error for a study that exists already."""
    return StudyError(
        f"there is a study {study!r} already", hint="go on with it, delete it or take another name"
    )


def check_unfinished(
    study: str, numbers: Collection[int], states: Mapping[int, State | None]
) -> None:
    """Nothing, if all numbers are of unfinished trials.

    Args:
        study: For the message.
        numbers: What a caller wants to change.
        states: The present states of at least those trials that exist.

    Raises:
        StudyError: a number is unknown, or its trial is finished.
    """
    for number in numbers:
        state = states.get(number)
        if state is None:
            raise StudyError(f"the study {study!r} has no trial {number}")
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
        told = {**outcome.metrics, **{f"spread of {k}": v for k, v in outcome.spread.items()}}
        for name, value in {**told, "cost_s": outcome.cost_s}.items():
            if not math.isfinite(value):
                raise StorageError(
                    f"trial {number}: {name} is {value}",
                    hint="a design that cannot be measured has a fault, not a number",
                )


def check_waiting(to: State) -> None:
    """Nothing, if the state is one of an unfinished trial.

    Raises:
        StudyError: it is not.
    """
    if to.finished:
        raise StudyError(f"a trial cannot be moved to {to.value}", hint="finish it instead")
