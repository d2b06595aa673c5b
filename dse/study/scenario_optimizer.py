"""Optimizer that completes the front of a single scenario after the study's own optimizer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from dse.core.design import Design
from dse.core.problem import Problem
from dse.core.trial import Event, Trial
from dse.optimizers.bayesian.front_completion import Completion, worthwhile
from dse.optimizers.exhaustive import Exhaustive
from dse.protocols import Optimizer, OptimizerTraits


class ScenarioOptimizer:
    """Optimizer wrapper that adds a scenario's name to the recorded events."""

    traits = OptimizerTraits(batch=1_024)

    def __init__(self, scenario: str, optimizer: Optimizer) -> None:
        self._scenario = scenario
        self._optimizer = optimizer

    def ask(self, count: int, pending: Sequence[Design] = ()) -> list[Design]:
        return self._optimizer.ask(count, pending)

    def tell(self, finished: Sequence[Trial]) -> None:
        self._optimizer.tell(finished)

    def events(self) -> list[Event]:
        events = self._optimizer.events()
        return [
            replace(one, kind="scenario", text=f"{self._scenario} alone: {one.kind}: {one.text}")
            for one in events
        ]


def for_free(problem: Problem, *, exact: bool) -> Optimizer | None:
    """Return an optimizer that completes a scenario's front without new measurements.

    Args:
        problem: the problem of the scenario.
        exact: whether the study's own front is exact.

    Returns:
        An exhaustive search if no metric is measured and ``exact`` is set. Otherwise an optimizer
        that suggests designs that share all measured values with finished trials; ``None`` if there
        are no such designs.
    """
    if exact and not problem.measured:
        return Exhaustive(problem)
    return Completion(problem) if worthwhile(problem) else None
