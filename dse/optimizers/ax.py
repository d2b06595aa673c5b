"""Bayesian optimisation by Meta's Ax with its default models, restricted to legal designs."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from dse.core.design import Design
from dse.core.problem import Problem
from dse.core.trial import Event, Trial
from dse.optimizers.adapters.encoded_points import axes, nearest_unseen_design
from dse.optimizers.bayesian.candidates import draw_designs
from dse.optimizers.support.constraints import known_admissible, trial_violations
from dse.optimizers.support.even_sequence import EvenSequence, first_designs
from dse.optimizers.support.seeded_scope import seed_generators


class AxService:
    """Optimizer that queries Ax, with a fresh client built from all finished trials per query.

    A study can therefore be replayed. Each point that Ax proposes, alone or in a batch, is replaced
    by the nearest legal design that was not suggested before and violates no modelled constraint.
    Ax models objectives and limits.

    Args:
        problem: problem to optimise.
        initial: number of space-filling designs before the first proposal by Ax; by default one per
            parameter, but at least 8 and at most 20.
        restarts: restarts of Ax's acquisition search. Ax's default is 20; fewer cost a fraction of
            the time, and every result is rounded to a legal design anyway.

    Source:
        Olson et al.: Ax: A Platform for Adaptive Experimentation, AutoML 2025.
    """

    def __init__(self, problem: Problem, *, initial: int | None = None, restarts: int = 4) -> None:
        self._problem = problem
        self._restarts = restarts
        self._initial = initial or first_designs(problem.space)
        self._sequence = EvenSequence(problem, lambda batch: known_admissible(problem, batch))
        self._finished: list[Trial] = []
        self._events: list[Event] = []

    def ask(self, count: int, pending: Sequence[Design] = ()) -> list[Design]:
        rng = self._problem.rng(len(self._finished), len(pending))
        taken = {*(trial.design for trial in self._finished), *pending}
        if self._is_early(pending):
            found = self._sequence.first(count, taken)
        else:
            found = self._propose_designs(count, pending, rng)
        if len(found) < count:
            found += draw_designs(self._problem, count - len(found), rng, taken.union(found))
        return found

    def tell(self, finished: Sequence[Trial]) -> None:
        self._finished += finished

    def events(self) -> list[Event]:
        drained, self._events = self._events, []
        return drained

    def _is_early(self, pending: Sequence[Design]) -> bool:
        """Return whether space-filling designs are still suggested instead of Ax's proposals.

        They are while there are too few trials for a model, or if Ax can vary no parameter.
        """
        done = np.isfinite(trial_violations(self._problem, self._finished)).sum()
        asked = len(self._finished) + len(pending)
        return asked < self._initial or done < 2 or not axes(self._problem.space)

    def _propose_designs(
        self, count: int, pending: Sequence[Design], rng: np.random.Generator
    ) -> list[Design]:
        taken = {*(trial.design for trial in self._finished), *pending}
        seed = int(rng.integers(2**31))
        found: list[Design] = []
        with seed_generators(seed):
            with _silent_import():
                from dse.optimizers.adapters.ax_client import suggest_points
            try:
                asked = suggest_points(
                    self._problem,
                    self._finished,
                    pending=pending,
                    count=count,
                    seed=seed,
                    restarts=self._restarts,
                )
            except Exception as error:  # noqa: BLE001 - Ax may raise anything; a study continues
                text = f"drawn at random, because Ax failed: {type(error).__name__}: {error}"
                self._events.append(Event(kind="fallback", text=text, told=len(self._finished)))
                return []
        for point in asked:
            found += nearest_unseen_design(self._problem, point, taken.union(found), rng)
        return found


@contextmanager
def _silent_import() -> Iterator[None]:
    """Silence log records while Ax is imported, as it logs the SQLAlchemy version it found."""
    before = logging.root.manager.disable
    logging.disable(logging.INFO)
    try:
        yield
    finally:
        logging.disable(before)
