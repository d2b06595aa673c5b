"""Preferences between trials of a study: recorded answers, the next question, the favourite.

Each answer is an event of the study's record, so that it is kept, exported and imported with the
study. A withdrawal is an event, too. Of several answers on the same pair the latest counts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import get_args

import numpy as np

from dse.core.pareto import ParetoSet
from dse.core.preference_answers import (
    PREFERENCE,
    WITHDRAWN,
    PreferenceAnswer,
    read_answers,
)
from dse.core.problem import Problem
from dse.core.trial import Event, Trial
from dse.core.trials import Trials
from dse.core.utility_posterior import Response, UtilityPosterior
from dse.errors import SpecError, StudyError
from dse.study.study_engine import StudyEngine

QUESTIONS = 8
"""Default number of questions."""

SURE = 0.9
"""Probability of the favourite from which no further question is asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Favourite:
    """Design that the user is expected to like best, given the answered comparisons.

    ``probability`` is the probability that the favourite loses at most one percent of utility to
    the user's best design.
    """

    trial: Trial
    probability: float


@dataclass(frozen=True, kw_only=True)
class Preferences:
    """Posterior over the user's utility over a study's front, from the recorded answers.

    ``trials`` are the rows of the posterior: the trials on the front, then trials that answers
    compare and that have left the front. ``unused`` are answers about trials that no longer count,
    because they are not in the record or not feasible.
    """

    problem: Problem
    trials: tuple[Trial, ...]
    answers: tuple[PreferenceAnswer, ...]
    unused: tuple[PreferenceAnswer, ...]
    posterior: UtilityPosterior

    @staticmethod
    def of(study: StudyEngine) -> Preferences:
        """Return the preferences recorded in a study.

        Raises:
            StudyError: the study has fewer than two objectives, or no feasible trial.
        """
        problem, finished = study.problem, study.finished
        front = ParetoSet.of(problem, finished)
        _check_choice(study.name, front)
        known = _feasible_trials(problem, finished)
        answers = read_answers(study.events)
        used = tuple(one for one in answers if {one.first, one.second} <= known.keys())
        rows = {trial.number: row for row, trial in enumerate(front.trials)}
        trials = list(front.trials)
        for number in (n for one in used for n in (one.first, one.second)):
            if number not in rows:
                rows[number] = len(trials)
                trials.append(known[number])
        keep = [rows[number] for one in used for number in (one.first, one.second)]
        posterior = UtilityPosterior.of(problem.trial_losses(trials), keep)
        for one in used:
            response: Response = "equal" if one.equal else "first"
            posterior = posterior.answered(rows[one.first], rows[one.second], response)
        return Preferences(
            problem=problem,
            trials=tuple(trials),
            answers=answers,
            unused=tuple(one for one in answers if one not in used),
            posterior=posterior,
        )

    @property
    def favourite(self) -> Favourite:
        """Favourite of the user, given the comparisons answered so far."""
        posterior = self.posterior
        return Favourite(trial=self.trials[posterior.favourite], probability=posterior.confidence)

    @property
    def is_sure(self) -> bool:
        """Whether the favourite is clear, so that further questions are not worth asking."""
        return len(self.trials) < 2 or self.posterior.confidence >= SURE

    def question(self, skipped: Sequence[tuple[Trial, Trial]] = ()) -> tuple[Trial, Trial] | None:
        """Return the two trials to compare next; ``None`` if no pair is left.

        Args:
            skipped: pairs that the user did not want to compare.
        """
        rows = {trial.number: row for row, trial in enumerate(self.trials)}
        done = [(one.first, one.second) for one in self.answers]
        done += [(a.number, b.number) for a, b in skipped]
        asked = [(rows[a], rows[b]) for a, b in done if a in rows and b in rows]
        pair = self.posterior.question(asked)
        return None if pair is None else (self.trials[pair[0]], self.trials[pair[1]])


def ask_preferences(
    study: StudyEngine,
    answer: Callable[[Trial, Trial], Response | None],
    questions: int = QUESTIONS,
) -> Preferences:
    """Ask which of two designs is better until the favourite is clear; store each answer.

    Args:
        study: the study.
        answer: called with two trials; returns the answer, or ``None`` to skip the pair.
        questions: the maximum number of questions.

    Returns:
        The preferences with all answers; those before an exception of ``answer`` are stored too.

    Raises:
        StudyError: the study has fewer than two objectives, or no feasible trial.
        SpecError: ``answer`` returns neither an answer nor ``None``.
    """
    preferences, skipped = Preferences.of(study), list[tuple[Trial, Trial]]()
    for _ in range(questions):
        pair = None if preferences.is_sure else preferences.question(skipped)
        if pair is None:
            break
        response = answer(*pair)
        if response is None:
            skipped.append(pair)
            continue
        if response not in get_args(Response):
            hint = f"return one of {', '.join(get_args(Response))}, or None to skip"
            raise SpecError(f"{response!r} is no answer", hint=hint)
        first, second = pair[::-1] if response == "second" else pair
        record_preference(study, first.number, second.number, equal=response == "equal")
        preferences = Preferences.of(study)
    return preferences


def record_preference(study: StudyEngine, first: int, second: int, *, equal: bool = False) -> None:
    """Record that one trial is preferred to another, or that both are equally good.

    Args:
        study: the study.
        first: number of the preferred trial.
        second: number of the other trial.
        equal: whether both are equally good.

    Raises:
        StudyError: the numbers are equal, or one of them is not a feasible finished trial.
    """
    if first == second:
        raise StudyError(
            f"trial {first} cannot be compared with itself", hint="name two trials, such as 3:7"
        )
    finished = study.finished
    known = _feasible_trials(study.problem, finished)
    for number in (first, second):
        if number not in known:
            _refuse_trial(study, number)
    answer = PreferenceAnswer(number=0, first=first, second=second, equal=equal)
    event = Event(kind=PREFERENCE, text=answer.text, told=len(finished))
    study.storage.record(study.name, [event])


def withdraw_answers(study: StudyEngine, numbers: Sequence[int]) -> list[PreferenceAnswer]:
    """Withdraw recorded answers by their numbers, and return them.

    Raises:
        StudyError: there is no such answer.
    """
    answers = {one.number: one for one in read_answers(study.events)}
    for number in numbers:
        if number not in answers:
            valid = ", ".join(map(str, answers))
            hint = f"valid: {valid}" if valid else "no answer is recorded"
            raise StudyError(f"there is no answer {number}", hint=hint)
    chosen = [answers[number] for number in dict.fromkeys(numbers)]
    finished = len(study.finished)
    events = [
        Event(kind=WITHDRAWN, text=f"answer {one.number}: {one.text}", told=finished)
        for one in chosen
    ]
    if events:
        study.storage.record(study.name, events)
    return chosen


def _check_choice(study: str, front: ParetoSet) -> None:
    if len(front.problem.objectives) < 2:
        raise StudyError(
            f"the study {study!r} has one objective, which decides between designs",
            hint=f"dse front {study} shows the best design",
        )
    if not front.trials:
        raise StudyError(
            f"no finished trial of {study!r} satisfies every limit",
            hint=f"dse front {study} shows the nearest misses",
        )


def _feasible_trials(problem: Problem, finished: Trials) -> dict[int, Trial]:
    rows = np.flatnonzero(problem.feasible(finished)).tolist()
    return {trial.number: trial for trial in (finished[row] for row in rows)}


def _refuse_trial(study: StudyEngine, number: int) -> None:
    """Raise the error for a trial that cannot be compared.

    Raises:
        StudyError: always, with the reason.
    """
    trials = study.trials
    if not 0 <= number < len(trials):
        raise StudyError(f"there is no trial {number}", hint=f"valid: 0 to {len(trials) - 1}")
    state = trials[number].state.value
    reason = (
        "breaks a limit, or has no value for an objective" if state == "done" else f"is {state}"
    )
    raise StudyError(
        f"trial {number} {reason}, and cannot be compared",
        hint=f"the trials of the front can: dse front {study.name}",
    )
