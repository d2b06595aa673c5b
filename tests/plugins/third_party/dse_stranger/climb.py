"""Climbing from the best designs to their neighbours."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from dse.core.design import Design
from dse.core.pareto import nondominated
from dse.core.problem import Problem
from dse.core.trial import Event, Trial


class Climb:
    """Asks neighbours of designs on the front, and random designs every now and then.

    Args:
        problem: the question.
        curiosity: the share of random designs.
    """

    def __init__(self, problem: Problem, *, curiosity: float = 0.2) -> None:
        self._problem = problem
        self._curiosity = curiosity
        self._told: list[Trial] = []

    def ask(self, count: int, pending: Sequence[Design] = ()) -> list[Design]:
        rng = self._problem.rng(len(self._told), len(pending))
        seen = {trial.design for trial in self._told} | set(pending)
        asked: dict[Design, None] = {}
        for design in self._proposals(count, rng):
            if len(asked) >= count:
                break
            if design not in seen:
                asked[design] = None
        return list(asked)

    def tell(self, finished: Sequence[Trial]) -> None:
        self._told += finished

    def events(self) -> list[Event]:
        return []

    def _proposals(self, count: int, rng: np.random.Generator) -> Iterator[Design]:
        """Good ideas first, then random ones, then whatever is left of a space that ends."""
        space = self._problem.space
        if space.count() == 0:
            return
        for _ in range(count):
            near = self._near(rng) if rng.random() >= self._curiosity else []
            yield from near[:1]
            yield from near[1:]
            yield from space.sample(1, rng).designs()
        for _ in range(8):
            yield from space.sample(4 * count, rng).designs()
        if space.count() is not None:
            for batch in space.enumerate():
                yield from batch.designs()

    def _near(self, rng: np.random.Generator) -> list[Design]:
        """Neighbours of one design of the front, in random order."""
        losses = self._problem.trial_losses(self._told)
        known = np.flatnonzero(~np.isnan(losses).any(axis=1))
        if not len(known):
            return []
        front = known[nondominated(losses[known])]
        best = self._told[int(rng.choice(front))].design
        near = self._problem.space.neighbours(best)
        return near.take(rng.permutation(len(near))).designs()
