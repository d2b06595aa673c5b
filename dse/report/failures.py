"""Why designs are not candidates for the front, the most frequent reason first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dse.core.problem import Problem
from dse.core.trial import Trial
from dse.core.trials import Trials
from dse.report.answer import broken_rows


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """One reason and the numbers of the trials that it struck."""

    kind: str
    reason: str
    trials: tuple[int, ...]


def failures(problem: Problem, trials: Sequence[Trial]) -> list[Failure]:
    """Faults by kind and reason, and limits that were broken; a trial may break several."""
    held = Trials.of(trials)
    found: dict[tuple[str, str], list[int]] = {}
    for number, fault in zip(held.number.tolist(), held.faults, strict=True):
        if fault is not None:
            found.setdefault((fault.kind, fault.reason), []).append(number)
    sound = held.take(np.array([fault is None for fault in held.faults], dtype=bool))
    for text, rows in broken_rows(problem, sound).items():
        found["outside a limit", text] = sound.number[rows].tolist()
    ordered = sorted(found.items(), key=lambda item: (-len(item[1]), item[0]))
    return [
        Failure(kind=kind, reason=reason, trials=tuple(numbers))
        for (kind, reason), numbers in ordered
    ]
