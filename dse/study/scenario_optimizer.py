"""Optimizer of one scenario alone, in addition to the study's own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from dse.core.design import Design
from dse.core.problem import Problem
from dse.core.trial import Event, Trial
from dse.optimizers.bayesian.front_completion import Completion, worthwhile
from dse.optimizers.exhaustive import Exhaustive
from dse.protocols import Optimizer


class ScenarioOptimizer:
    """Optimizer that asks what another does, and labels its events with one scenario."""

    batch = 1_024

    def __init__(self, scenario: str, optimizer: Optimizer) -> None:
        self._scenario = scenario
        self._optimizer = optimizer

    def ask(self, count: int, pending: Sequence[Design] = ()) -> list[Design]:
        return self._optimizer.ask(count, pending)

    def tell(self, finished: Sequence[Trial]) -> None:
        self._optimizer.tell(finished)

    def events(self) -> list[Event]:
        told = self._optimizer.events()
        return [
            replace(one, kind="scenario", text=f"{self._scenario} alone: {one.kind}: {one.text}")
            for one in told
        ]


def for_free(problem: Problem, *, exact: bool) -> Optimizer | None:
    """Asks the front of a problem as far as no design has to be measured for it.

    Args:
        problem: as it is under one scenario.
        exact: whether the study's own front is exact.
    """
    if exact and not problem.measured:
        return Exhaustive(problem)
    return Completion(problem) if worthwhile(problem) else None
