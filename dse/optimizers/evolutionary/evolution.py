"""Shared engine of the evolutionary optimizers; each method adds its own survival rule."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from dse.core.batch import Batch, concatenate_batches
from dse.core.design import Design
from dse.core.problem import Problem
from dse.core.trial import Event, Trial
from dse.core.values import Floats, Ints
from dse.core.variation import cross_parents, mutate_designs
from dse.errors import PluginError
from dse.optimizers.support.constraints import weigh_trials
from dse.optimizers.support.unseen_designs import fresh, unseen
from dse.protocols import OptimizerTraits

_ROUNDS = 12
"""Breeding rounds before designs are drawn at random; further rounds find few new designs."""

_SPARE = 8
"""Extra children per round, since some duplicate known designs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """Designs that compete for survival: the parents in their order, then newly finished designs.

    Failed and infeasible designs are left out, but counted in the number of finished trials.
    """

    losses: Floats  # (n, m)
    violations: Floats  # (n,), total constraint violation; 0 if feasible
    parents: int
    finished: int


class Survival(Protocol):
    """Survival rule of an evolutionary method: selects the next parents and pairs mates.

    Laws:
        - It draws random numbers only from the generator in its arguments.
        - Asking for mates changes nothing.
    """

    def survivors(self, pool: Pool, rng: np.random.Generator) -> Ints:
        """Return the indices of the next parents among the competing designs, each once."""
        ...

    def mates(self, count: int, rng: np.random.Generator) -> Ints:
        """Return pairs of parents to mate, (count, 2), as indices into the latest survivors."""
        ...


class Evolution:
    """Optimizer that breeds legal, unseen designs from the surviving parents.

    A generation is the next ``size`` finished trials, in any order of completion. With ``steady``,
    each finished trial after the first ``size`` competes with the parents at once, so that no
    worker waits for the last trial of a generation.

    Args:
        problem: problem to optimise.
        survival: survival rule of the method.
        size: population size.
        crossover: fraction of children with two parents.
        mutation: mutation probability of each component; by default one over their number.
        steady: whether each finished trial competes at once, without waiting for a generation.
    """

    def __init__(
        self,
        problem: Problem,
        survival: Survival,
        *,
        size: int,
        crossover: float,
        mutation: float | None,
        steady: bool,
    ) -> None:
        self.size = size
        self.batch = 1 if steady else size
        self.traits = OptimizerTraits(batch=self.batch)
        self.parents: list[Trial] = []
        self._problem = problem
        self._survival = survival
        self._crossover = crossover
        self._mutation = mutation
        self._taken: set[Design] = set()
        self._young: list[Trial] = []
        self._ripe = 0
        self._losses, self._violations = weigh_trials(problem, [])
        self._genes = Batch({}, 0)

    def ask(self, count: int, pending: Sequence[Design] = ()) -> list[Design]:
        rng = self._problem.rng(self._ripe + len(self._young), len(pending))
        found: dict[Design, None] = {}
        for _ in range(_ROUNDS if self.parents else 0):
            bred = self._breed_children(count - len(found), rng, {*found, *pending})
            found |= dict.fromkeys(bred)
            if len(found) >= count:
                return list(found)
        others = self._taken.union(pending, found)
        return [*found, *fresh(self._problem.space, count - len(found), rng, others)]

    def tell(self, finished: Sequence[Trial]) -> None:
        self._young += finished
        self._taken.update(trial.design for trial in finished)
        start = 0
        while len(self._young) - start >= (due := self.batch if self._ripe else self.size):
            self._ripe += due
            self._compete(self._young[start : start + due])
            start += due
        del self._young[:start]

    def events(self) -> list[Event]:
        return []

    def _compete(self, generation: Sequence[Trial]) -> None:
        losses, violations = weigh_trials(self._problem, generation)
        alive = np.isfinite(violations)
        if not alive.any():
            return
        newcomers = [trial for trial, ok in zip(generation, alive, strict=True) if ok]
        trials = [*self.parents, *newcomers]
        genes = [self._genes, self._problem.space.batch([trial.design for trial in newcomers])]
        losses = np.concatenate([self._losses, losses[alive]])
        violations = np.concatenate([self._violations, violations[alive]])
        pool = Pool(
            losses=losses, violations=violations, parents=len(self.parents), finished=self._ripe
        )
        stay = self._survival.survivors(pool, self._problem.rng(self._ripe).spawn(1)[0])
        self.parents = [trials[place] for place in stay.tolist()]
        self._losses, self._violations = losses[stay], violations[stay]
        self._genes = concatenate_batches(genes).take(stay)

    def _breed_children(
        self, count: int, rng: np.random.Generator, taken: Collection[Design]
    ) -> list[Design]:
        """Return up to ``count`` children that are neither known designs nor in ``taken``."""
        space = self._problem.space
        mothers, fathers = self._survival.mates(count + _SPARE, rng).T
        fathers = np.where(rng.random(len(mothers)) < self._crossover, fathers, mothers)
        children = cross_parents(space, self._genes.take(mothers), self._genes.take(fathers), rng)
        new = unseen(mutate_designs(space, children, rng, chance=self._mutation), self._taken)
        return [design for design in new if design not in taken][:count]


def population(problem: Problem, asked: int | None, *, least: int = 24) -> int:
    """Return the population size: as the user set it, or four per parameter within bounds.

    Args:
        problem: problem to optimise.
        asked: size that the user set, if any.
        least: lower bound of the default size; the upper bound is 100, or this bound if larger.

    Raises:
        PluginError: ``asked`` is below the number of objectives.
    """
    if asked is None:
        return int(np.clip(4 * len(problem.space.parameters), least, max(least, 100)))
    if asked < max(len(problem.objectives), 1):
        raise PluginError(
            f"pop_size {asked} is too small for {len(problem.objectives)} objectives",
            hint="leave it out, or take some ten times as many",
        )
    return asked
