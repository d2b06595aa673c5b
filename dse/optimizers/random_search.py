"""Random search over the legal designs: the baseline that every other method must beat."""

from __future__ import annotations

from collections.abc import Sequence

from dse.core.design import Design
from dse.core.problem import Problem
from dse.core.trial import Event, Trial
from dse.optimizers.support.unseen_designs import fresh
from dse.protocols import OptimizerTraits


class RandomSearch:
    """Optimizer that suggests legal designs at random, each at most once."""

    traits = OptimizerTraits(batch=256)

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._taken: set[Design] = set()
        self._finished_count = 0

    def ask(self, count: int, pending: Sequence[Design] = ()) -> list[Design]:
        rng = self._problem.rng(self._finished_count, len(pending))
        return fresh(self._problem.space, count, rng, self._taken.union(pending))

    def tell(self, finished: Sequence[Trial]) -> None:
        self._taken.update(trial.design for trial in finished)
        self._finished_count += len(finished)

    def events(self) -> list[Event]:
        return []
