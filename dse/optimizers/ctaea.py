"""C-TAEA: evolutionary search with a feasible converging archive and an exploring archive."""

from __future__ import annotations

import numpy as np
from pymoo.algorithms.moo.ctaea import CADASurvival
from pymoo.core.population import Population
from pymoo.util.nds.non_dominated_sorting import NonDominatedSorting

from dse.core.problem import Problem
from dse.core.values import Floats, Ints, Mask
from dse.optimizers.evolutionary.constrained_ranks import entrants
from dse.optimizers.evolutionary.constrained_survival import restore_filters
from dse.optimizers.evolutionary.evolution import Evolution, Pool
from dse.optimizers.evolutionary.reference_directions import (
    directed_population,
    directions_of,
    scale_losses,
)


def ctaea(
    problem: Problem,
    *,
    pop_size: int | None = None,
    directions: str = "das-dennis",
    crossover: float = 0.9,
    mutation: float | None = None,
    steady: bool = False,
) -> Evolution:
    """Build C-TAEA, which mates a feasible and an exploring archive; for tight constraints.

    Args:
        problem: problem to optimise.
        pop_size: population size; by default four per parameter, at least 24 and enough for
            reference directions in steps of a third (but at most 128), otherwise at most 100.
        directions: kind of reference directions: ``das-dennis``, evenly spaced, or ``energy``,
            exactly ``pop_size`` of them.
        crossover: fraction of children with two parents.
        mutation: mutation probability of each component; by default one over their number.
        steady: whether each finished trial competes at once, without waiting for a generation.

    Raises:
        StudyError: there is only one objective.

    Source:
        Li, Chen, Fu, Yao: Two-Archive Evolutionary Algorithm for Constrained Multiobjective
        Optimization, IEEE Transactions on Evolutionary Computation 23(2), 2019.
    """
    size = directed_population(problem, pop_size)
    spread = directions_of(len(problem.objectives), size, directions)
    return Evolution(
        problem,
        TwoArchives(spread),
        size=size,
        crossover=crossover,
        mutation=mutation,
        steady=steady,
    )


class TwoArchives:
    """Survival rule of C-TAEA, with a convergence archive and a diversity archive of parents.

    Both archives hold indices into the parents.
    """

    def __init__(
        self,
        directions: Floats,  # (k, m)
    ) -> None:
        self._directions = directions
        self._converged = self._diverse = np.zeros(0, dtype=np.int64)
        self._losses = np.zeros((0, directions.shape[1]))
        self._inside = np.zeros(0, dtype=bool)

    def survivors(self, pool: Pool, rng: np.random.Generator) -> Ints:
        losses = scale_losses(pool.losses)
        newcomers = np.arange(pool.parents, len(losses))
        rules = _Archives(self._directions, losses, pool.violations)
        converged = rules.converged(np.concatenate([self._converged, newcomers]), rng)
        diverse = rules.diverse(np.concatenate([self._diverse, newcomers]), converged)
        stay, places = np.unique(np.concatenate([converged, diverse]), return_inverse=True)
        self._converged, self._diverse = np.split(places, [len(converged)])
        self._losses, self._inside = losses[stay], pool.violations[stay] == 0
        return stay

    def mates(self, count: int, rng: np.random.Generator) -> Ints:
        """Return pairs of parents to mate, (count, 2), as indices into the parents.

        The first mate is from the archive with more non-dominated members. The second is from the
        convergence archive with a probability equal to its number of non-dominated members over the
        size of both archives, else from the diversity archive.
        """
        both = np.concatenate([self._converged, self._diverse])
        _, ranks = NonDominatedSorting().do(self._losses[both], return_rank=True)
        leading = ranks == 0
        shares = [part.sum() / len(both) for part in np.split(leading, [len(self._converged)])]
        from_converged = rng.random(count) < shares[0]
        firsts = self._converged if shares[0] > shares[1] else self._diverse
        seconds = np.where(
            from_converged,
            self._winners(self._converged, count, rng),
            self._winners(self._diverse, count, rng),
        )
        return np.column_stack([self._winners(firsts, count, rng), seconds])

    def _winners(self, archive: Ints, count: int, rng: np.random.Generator) -> Ints:
        """Return the winners of ``count`` random binary tournaments in an archive, (count,).

        A feasible entrant beats an infeasible entrant, and a feasible entrant that dominates the
        other one beats it; otherwise the winner is random.
        """
        one, other = (archive[places] for places in entrants(len(archive), count, rng))
        heads = rng.random(count) < 0.5
        first = self._beats(one, other) | (heads & ~self._beats(other, one))
        return np.where(first, one, other)

    def _beats(self, one: Ints, other: Ints) -> Mask:
        no_worse = (self._losses[one] <= self._losses[other]).all(axis=1)
        better = (self._losses[one] < self._losses[other]).any(axis=1)
        alone = self._inside[one] & ~self._inside[other]
        return alone | (self._inside[one] & self._inside[other] & no_worse & better)


class _Archives(CADASurvival):  # type: ignore[misc]  # pymoo has no types
    """pymoo's updates of the two archives, for members of a pool given by index.

    An archive may have fewer members than directions.
    """

    def __init__(
        self,
        directions: Floats,  # (k, m)
        losses: Floats,  # (n, m)
        violations: Floats,  # (n,)
    ) -> None:
        super().__init__(directions)
        self.ideal_point = losses.min(axis=0)
        self._all = Population.new(
            "X", np.arange(len(losses))[:, None], "F", losses, "G", violations[:, None]
        )

    def converged(self, places: Ints, rng: np.random.Generator) -> Ints:
        """Return the members of the new convergence archive, feasible designs first.

        Infeasible designs of least violation follow. The archive has at most one member per
        reference direction.
        """
        if len(places) <= len(self.ref_dirs):
            return places
        with restore_filters():
            kept = self._updateCA(self._all[places], len(self.ref_dirs), random_state=rng)
        found: Ints = kept.get("X")[:, 0]
        return found

    def diverse(self, places: Ints, converged: Ints) -> Ints:
        """Return the members of the new diversity archive, at most one per reference direction.

        They may be infeasible. The archive prefers the best members along directions that have few
        members of the convergence archive.
        """
        places = np.unique(places)
        niches, values = self._associate(self._all[places])
        crowds = np.bincount(self._associate(self._all[converged])[0], minlength=len(self.ref_dirs))
        queues = [
            self._by_front(places[niches == niche], values[niches == niche])
            for niche in range(len(self.ref_dirs))
        ]
        found: list[int] = []
        most, turn = min(len(self.ref_dirs), len(places)), 1
        while len(found) < most:
            for queue, crowd in zip(queues, crowds.tolist(), strict=True):
                room = max(min(turn - crowd, most - len(found)), 0)
                found += queue[:room]
                del queue[:room]
            turn += 1
        return np.array(found, dtype=np.int64)

    def _by_front(
        self,
        places: Ints,  # (n,)
        values: Floats,  # (n,), along the direction
    ) -> list[int]:
        """Return member indices sorted by front rank, then by their value along the direction."""
        if not len(places):
            return []
        _, ranks = NonDominatedSorting().do(self._all[places].get("F"), return_rank=True)
        return places[np.lexsort((values.reshape(-1), ranks))].tolist()
