"""Why designs are not candidates for the front, the most frequent reason first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dse.core.problem import Problem
from dse.core.trial import Trial
from dse.report.answer import broken_limits


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """One reason and the numbers of the trials that it struck."""

    kind: str
    reason: str
    trials: tuple[int, ...]


def failures(problem: Problem, trials: Sequence[Trial]) -> list[Failure]:
    """Faults by kind and reason, and limits that were broken; a trial may break several."""
    found: dict[tuple[str, str], list[int]] = {}
    for trial, broken in zip(trials, broken_limits(problem, trials), strict=True):
        if trial.fault is not None:
            found.setdefault((trial.fault.kind, trial.fault.reason), []).append(trial.number)
            continue
        for text in broken:
            found.setdefault(("outside a limit", text), []).append(trial.number)
    ordered = sorted(found.items(), key=lambda item: (-len(item[1]), item[0]))
    return [
        Failure(kind=kind, reason=reason, trials=tuple(numbers))
        for (kind, reason), numbers in ordered
    ]
