"""A scrambled Sobol sequence over the legal designs: random search without its gaps and clumps."""

from __future__ import annotations

from collections.abc import Sequence

from dse.core.design import Design
from dse.core.problem import Problem
from dse.core.trial import Event, Trial
from dse.optimizers.fresh import fresh
from dse.optimizers.sequence import EvenSequence


class Sobol:
    """Asks the designs along the sequence, then whatever the sequence left out."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._sequence = EvenSequence(problem)
        self._told: list[Design] = []

    def ask(self, count: int, pending: Sequence[Design] = ()) -> list[Design]:
        taken = {*self._told, *pending}
        found = self._sequence.first(count, taken)
        if len(found) < count:
            rng = self._problem.rng(len(self._told), len(pending))
            found += fresh(self._problem.space, count - len(found), rng, taken.union(found))
        return found

    def tell(self, finished: Sequence[Trial]) -> None:
        self._told += [trial.design for trial in finished]

    def events(self) -> list[Event]:
        return []
