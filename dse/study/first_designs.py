"""Optimizer for a study's first design, whose cost ``auto`` needs to choose an optimizer."""

from __future__ import annotations

from collections.abc import Sequence

from dse.core.design import Design
from dse.core.problem import Problem
from dse.core.trial import Event, Trial
from dse.optimizers.support.unseen_designs import fresh


class FirstDesigns:
    """Optimizer that suggests one random legal design that is neither finished nor pending."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._finished_designs: list[Design] = []

    def ask(self, count: int, pending: Sequence[Design] = ()) -> list[Design]:  # noqa: ARG002
        rng = self._problem.rng(len(self._finished_designs))
        if self._finished_designs:
            return fresh(self._problem.space, 1, rng, {*self._finished_designs, *pending})
        return self._problem.space.sample(1, rng).designs()

    def tell(self, finished: Sequence[Trial]) -> None:
        self._finished_designs += [trial.design for trial in finished]

    def events(self) -> list[Event]:
        return []
