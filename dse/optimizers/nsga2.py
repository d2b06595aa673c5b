"""NSGA-II over legal designs: pymoo selects, the space's own moves vary."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
from pymoo.algorithms.moo.nsga2 import binary_tournament
from pymoo.core.population import Population
from pymoo.operators.selection.tournament import TournamentSelection
from pymoo.operators.survival.rank_and_crowding import RankAndCrowding

from dse.core.design import Design
from dse.core.moves import crossed, mutated
from dse.core.problem import Problem
from dse.core.trial import Event, Trial
from dse.core.values import Array, Ints
from dse.optimizers.fresh import fresh, unseen
from dse.optimizers.violations import trial_violations

_ROUNDS = 8
"""Broods bred before a design is drawn at random: more than that find little else."""
_CONSTRAINED = SimpleNamespace(has_constraints=lambda: True)


class Nsga2:
    """Survival by rank and crowding, tournaments, crossover and mutation; all designs legal.

    A generation is the next ``pop_size`` finished trials, in whatever order they finish. A trial
    outside its limits ranks behind those within, by how far it is outside; one that failed or
    cannot exist ranks last.

    Args:
        pop_size: by default four times the number of parameters, but 24 at least and 100 at most.
        crossover: the share of children with two parents.
        mutation: the chance of each component to move; by default one in as many as there are.

    Source:
        Deb, Pratap, Agarwal, Meyarivan: A Fast and Elitist Multiobjective Genetic Algorithm:
        NSGA-II, IEEE Transactions on Evolutionary Computation 6(2), 2002.
    """

    def __init__(
        self,
        problem: Problem,
        *,
        pop_size: int | None = None,
        crossover: float = 0.9,
        mutation: float | None = None,
    ) -> None:
        self._problem = problem
        self._size = pop_size or int(np.clip(4 * len(problem.space.parameters), 24, 100))
        self.batch = self._size
        self._crossover = crossover
        self._mutation = mutation
        self._told: list[Trial] = []
        self._taken: set[Design] = set()
        self._parents: list[Trial] = []
        self._ranked: Any = Population()  # pymoo has no types
        self._ripe = 0

    def ask(self, count: int, pending: Sequence[Design] = ()) -> list[Design]:
        rng = self._problem.rng(len(self._told), len(pending))
        taken = self._taken.union(pending)
        found: list[Design] = []
        for _ in range(_ROUNDS if self._parents else 0):
            found += self._brood(count - len(found), rng, taken.union(found))
            if len(found) >= count:
                return found[:count]
        return found + fresh(self._problem.space, count - len(found), rng, taken.union(found))

    def tell(self, finished: Sequence[Trial]) -> None:
        self._told += finished
        self._taken.update(trial.design for trial in finished)
        while len(self._told) - self._ripe >= self._size:
            self._survive(self._told[self._ripe : self._ripe + self._size])
            self._ripe += self._size

    def events(self) -> list[Event]:
        return []

    def _survive(self, generation: Sequence[Trial]) -> None:
        trials = [*self._parents, *generation]
        pool = _population(self._problem, trials)
        self._ranked = RankAndCrowding().do(
            _CONSTRAINED,
            pool,
            n_survive=self._size,
            random_state=self._problem.rng(self._ripe + self._size),
        )
        self._parents = [trials[place] for place in self._ranked.get("X")[:, 0]]

    def _brood(self, count: int, rng: np.random.Generator, taken: set[Design]) -> list[Design]:
        space = self._problem.space
        mothers, fathers = self._chosen(2 * count, rng).T
        parents = space.batch([trial.design for trial in self._parents])
        fathers = np.where(rng.random(len(mothers)) < self._crossover, fathers, mothers)
        children = crossed(space, parents.take(mothers), parents.take(fathers), rng)
        return unseen(mutated(space, children, rng, chance=self._mutation), taken)[:count]

    def _chosen(self, pairs: int, rng: np.random.Generator) -> Ints:
        """Winners of tournaments among the parents, (pairs, 2)."""
        rules = SimpleNamespace(tournament_type="comp_by_rank_and_crowding", random_state=rng)
        tournament = TournamentSelection(func_comp=binary_tournament)
        if len(self._parents) == 1:
            return np.zeros((pairs, 2), dtype=np.int64)
        winners: Array = tournament.do(
            None, self._ranked, pairs, 2, to_pop=False, algorithm=rules, random_state=rng
        )
        return winners.astype(np.int64)


def _population(problem: Problem, trials: Sequence[Trial]) -> Any:
    """The trials as pymoo wants them; the losses of one without metrics are never looked at."""
    violations = trial_violations(problem, trials)
    worst = violations[np.isfinite(violations)].max(initial=0.0)
    ranked = np.where(np.isfinite(violations), violations, worst + 1)
    losses = np.nan_to_num(problem.trial_losses(trials))
    places = np.arange(len(trials))[:, None]
    return Population.new("X", places, "F", losses, "G", ranked[:, None])
