"""Reasons why trials failed or are infeasible, the most frequent first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dse.core.problem import Problem
from dse.core.trial import Trial
from dse.core.trials import Trials
from dse.report.answer import broken_rows

MOST_REASONS = 50
"""Maximum number of reasons on a page; the most frequent are shown."""

UNDEFINED = "undefined"
"""Kind of failure in which an evaluated design has an objective or a limit without a value."""

_MOST_LETTERS = 2_000
_MOST_NUMBERS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureReason:
    """Reason why designs failed or are infeasible, with the affected trials' numbers."""

    kind: str
    reason: str
    trials: tuple[int, ...]


def list_failure_reasons(problem: Problem, trials: Sequence[Trial]) -> list[FailureReason]:
    """Return the reasons why trials cannot be on the front, the most frequent first.

    The reasons are failures (by kind and message), undefined values, and violated limits. A trial
    that violates several limits counts for each of them.
    """
    held = Trials.of(trials)
    found: dict[tuple[str, str], list[int]] = {}
    for number, failure in zip(held.number.tolist(), held.failures, strict=True):
        if failure is not None:
            found.setdefault((failure.kind, failure.reason), []).append(number)
    sound = held.take(np.array([failure is None for failure in held.failures], dtype=bool))
    for row in np.flatnonzero(problem.failed(sound)).tolist():
        reason = problem.undefined_words([sound[row]])
        found.setdefault((UNDEFINED, reason), []).append(int(sound.number[row]))
    for text, rows in broken_rows(problem, sound).items():
        found["outside a limit", text] = sound.number[rows].tolist()
    ordered = sorted(found.items(), key=lambda item: (-len(item[1]), item[0]))
    return [
        FailureReason(kind=kind, reason=reason, trials=tuple(numbers))
        for (kind, reason), numbers in ordered
    ]


def failure_rows(found: Sequence[FailureReason]) -> list[tuple[str, str, str, str]]:
    """Return table rows of the most frequent failures: kind, reason, count, some trial numbers."""
    return [
        (one.kind, _reason(one), str(len(one.trials)), _numbers(one))
        for one in found[:MOST_REASONS]
    ]


def rarer_words(found: Sequence[FailureReason]) -> str:
    """Return how many further failure reasons a table leaves out, as text; may be empty."""
    rest = found[MOST_REASONS:]
    designs = sum(len(one.trials) for one in rest)
    return f"{len(rest):,} rarer reasons of {designs:,} designs" if rest else ""


def _reason(failure: FailureReason) -> str:
    long = len(failure.reason) > _MOST_LETTERS
    return f"{failure.reason[:_MOST_LETTERS]}…" if long else failure.reason


def _numbers(failure: FailureReason) -> str:
    more = len(failure.trials) - _MOST_NUMBERS
    numbers = ", ".join(map(str, failure.trials[:_MOST_NUMBERS]))
    return f"{numbers} and {more} more" if more > 0 else numbers
