"""Scrambled Sobol sequence over the legal designs: random search without gaps and clusters."""

from __future__ import annotations

from collections.abc import Sequence

from dse.core.design import Design
from dse.core.problem import Problem
from dse.core.trial import Event, Trial
from dse.optimizers.support.even_sequence import EvenSequence
from dse.optimizers.support.unseen_designs import fresh
from dse.protocols import OptimizerTraits


class Sobol:
    """Optimizer that suggests designs along a Sobol sequence, then at random."""

    traits = OptimizerTraits(batch=256)

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._sequence = EvenSequence(problem)
        self._taken: set[Design] = set()
        self._finished_count = 0

    def ask(self, count: int, pending: Sequence[Design] = ()) -> list[Design]:
        taken = self._taken.union(pending)
        found = self._sequence.first(count, taken)
        if len(found) < count:
            rng = self._problem.rng(self._finished_count, len(pending))
            found += fresh(self._problem.space, count - len(found), rng, taken.union(found))
        return found

    def tell(self, finished: Sequence[Trial]) -> None:
        self._taken.update(trial.design for trial in finished)
        self._finished_count += len(finished)

    def events(self) -> list[Event]:
        return []
