"""Designs that a report presents as a study's result: the front, or the nearest misses.

The nearest misses are the designs that violate the limits least, if none is feasible.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from dse.core.pareto import ParetoSet
from dse.core.problem import Problem
from dse.core.trial import State, Trial
from dse.core.trials import Trials
from dse.core.values import Floats, Ints, Mask, Value

MOST_SHOWN = 3_000
"""Maximum number of designs on a page; of more, evenly spaced ones, both ends and the knee."""

MOST_PARAMETERS = 24
"""Maximum number of parameters shown for each design; of more, the most important ones."""


@dataclass(frozen=True, kw_only=True)
class Answer:
    """Designs that a report presents as the result: the front, or the designs nearest to feasible.

    If no design is feasible, ``trials`` are the trials with the smallest sum of constraint
    violations, ``feasible`` is false, and ``broken`` maps each limit that a trial violates to the
    amount (as a fraction of the bound if the bound is a constant). ``weighty`` are the parameters
    by importance, the most important first, if known.
    """

    problem: Problem
    trials: tuple[Trial, ...]
    values: Floats  # (n, m), in the objectives' own units and signs
    feasible: bool
    broken: tuple[Mapping[str, float], ...]
    weighty: tuple[str, ...] = ()

    @staticmethod
    def of(front: ParetoSet, trials: Sequence[Trial] = (), weighty: Sequence[str] = ()) -> Answer:
        """Build the result: the front or, if it is empty, the trials nearest to feasible."""
        kept: tuple[Trial, ...] = front.trials
        broken: tuple[Mapping[str, float], ...] = ({},) * len(kept)
        if not kept:
            kept, broken = _nearest_misses(front.problem, trials)
        return Answer(
            problem=front.problem,
            trials=kept,
            values=objective_values(front.problem, kept),
            feasible=bool(front.trials),
            broken=broken,
            weighty=tuple(weighty),
        )

    def thin(self, most: int, keep: Trial | None = None) -> Answer:
        """Reduce the result to ``most`` evenly spaced trials, both ends included, plus ``keep``."""
        size = len(self.trials)
        if size <= most:
            return self
        rows = np.linspace(0, size - 1, most).round().astype(np.int64)
        kept = np.unique([*rows.tolist(), *([] if keep is None else [self.trials.index(keep)])])
        return replace(
            self,
            trials=tuple(self.trials[row] for row in kept.tolist()),
            values=self.values[kept],
            broken=tuple(self.broken[row] for row in kept.tolist()),
        )

    @cached_property
    def common(self) -> dict[str, Value]:
        """Parameter values that all trials of the result share; empty for fewer than two."""
        if len(self.trials) < 2:
            return {}
        first, *others = (trial.design for trial in self.trials)
        return {
            name: value
            for name, value in first.items()
            if all(design.get(name) == value for design in others)
        }

    @cached_property
    def varying(self) -> tuple[str, ...]:
        """Names of the parameters that differ between the result's trials, in the space's order."""
        used = {name for trial in self.trials for name in trial.design} - self.common.keys()
        return tuple(p.name for p in self.problem.space.parameters if p.name in used)

    @cached_property
    def shown_parameters(self) -> tuple[str, ...]:
        """Names of the parameters that a report shows for each design, in the space's order.

        These are the parameters that differ between trials, or all if none does. If there are more
        than ``MOST_PARAMETERS``, the most important ones are kept.
        """
        names = self.varying or tuple(self.trials[0].design if self.trials else ())
        rank = {name: place for place, name in enumerate(self.weighty)}
        kept = sorted(names, key=lambda name: rank.get(name, len(rank)))[:MOST_PARAMETERS]
        return tuple(name for name in names if name in set(kept))

    @property
    def omission_note(self) -> str:
        """Sentence such as ``24 of 200 parameters are shown.``; empty if all are shown."""
        every = len(self.varying) or len(self.shown_parameters)
        some = len(self.shown_parameters)
        return f"{some} of {every} parameters are shown." if some < every else ""

    @property
    def other_metrics(self) -> tuple[str, ...]:
        """Metrics that limits and composite objectives read, without those that are objectives."""
        bare = {objective.text for objective in self.problem.objectives}
        return tuple(sorted(self.problem.asked - bare))


def objective_values(problem: Problem, trials: Sequence[Trial]) -> Floats:
    """Return the objectives in their own units and signs, (n, m); NaN for unknown metrics."""
    signs = np.array([o.sign for o in problem.objectives])
    return np.asarray(problem.trial_losses(trials) * signs + 0.0)  # + 0.0: no minus zero


def broken_limits(problem: Problem, trials: Sequence[Trial]) -> list[dict[str, float]]:
    """Return for each trial a mapping from the texts of violated limits to the violations.

    Amounts are fractions of the bound if the bound is a constant.
    """
    slacks = problem.slacks(problem.columns(trials), len(trials))
    texts = [limit.text for limit in problem.limits]
    broken: list[dict[str, float]] = [{} for _ in range(len(trials))]
    for row, column in np.argwhere(np.isfinite(slacks) & (slacks < 0)).tolist():
        text, amount = texts[column], -float(slacks[row, column])
        broken[row][text] = max(amount, broken[row].get(text, 0.0))
    return broken


def broken_rows(problem: Problem, trials: Trials) -> dict[str, Ints]:
    """Return the indices of the trials that violate each limit, by the limit's text.

    A limit that no trial violates is left out.
    """
    slacks = problem.slacks(problem.columns(trials), len(trials))
    outside = np.isfinite(slacks) & (slacks < 0)
    found: dict[str, Mask] = {}
    for limit, rows in zip(problem.limits, outside.T, strict=True):
        found[limit.text] = rows | found.get(limit.text, np.zeros(len(trials), dtype=bool))
    return {text: np.flatnonzero(rows) for text, rows in found.items() if rows.any()}


def _nearest_misses(
    problem: Problem, trials: Sequence[Trial]
) -> tuple[tuple[Trial, ...], tuple[Mapping[str, float], ...]]:
    done = Trials.of(trials)
    done = done.take(done.are(State.DONE))
    slacks = problem.slacks(problem.columns(done), len(done))  # (n, l)
    misses = np.minimum(slacks, 0.0).sum(axis=1)
    if not np.isfinite(misses).any():
        return (), ()
    kept = list(done.take(misses == np.nanmax(misses)))
    return tuple(kept), tuple(broken_limits(problem, kept))
