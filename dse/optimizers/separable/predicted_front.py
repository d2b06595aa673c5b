"""Predicted front over all designs: modelled losses against predicted sums of terms."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dse.core.batch import Batch
from dse.core.values import Floats
from dse.optimizers.bayesian.conditional_fronts import ConditionalFrontCache
from dse.optimizers.bayesian.measured_settings import merge_settings
from dse.optimizers.separable.additive_space import AdditiveSpace, known_columns
from dse.optimizers.separable.front_of_sums import SumFront, front_of_sums

_CONTEXTS = 16
"""Most combinations of free parameters for which a front is searched."""
_CANDIDATES = 512
"""Most members of one front that become candidates."""
_TESTED = 4_096
"""Most members of one front whose probability of feasibility is computed."""
_LIKELY = 0.01
"""Probability to keep the learnt limits below which a member is no candidate."""
_CHECKED = 64
"""Random designs on which modelled losses are compared with sums over the terms."""
_EQUAL = 1e-6
"""Largest difference of equal losses, as a fraction of their range."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """Modelled losses that each parameter group's values add, for fixed free parameters.

    Free parameters are those that no measurement reads. ``exact`` states whether the modelled
    losses are sums over the groups.
    """

    tables: list[Floats]  # (rows, b) for each term
    exact: bool


class PredictedFront:
    """Search of the front that additive surrogates predict, by dynamic programming.

    The objectives are sums of one term per parameter group.

    Args:
        space: the parameter groups and the value combinations of each.
        front_cache: fronts over the free parameters, which no measurement reads.
    """

    def __init__(self, space: AdditiveSpace, front_cache: ConditionalFrontCache) -> None:
        self._space = space
        self._front_cache = front_cache

    def candidates(
        self,
        effects: Sequence[Sequence[Floats]],
        chances: Callable[[Batch], Floats] | None = None,
    ) -> Batch:
        """Return designs on the predicted front, with the free parameters of the base design.

        Args:
            effects: for each separable objective and limit, the predicted term of each value
                combination of each parameter group.
            chances: function that returns the probability of n designs, (n,), to keep the measured
                limits; designs that hardly can are left out.
        """
        found = []
        for context in self.contexts:
            tables = [
                np.column_stack([known, *(own[place] for own in effects)])
                for place, known in enumerate(context.tables)
            ]
            front = front_of_sums(tables)
            if chances is not None:
                front = self._likely(front.thinned(_TESTED), chances)
            found.append(front.thinned(_CANDIDATES).rows)
        return self._space.designs(np.unique(np.vstack(found), axis=0))

    def _likely(self, front: SumFront, chances: Callable[[Batch], Floats]) -> SumFront:
        """Return the members of a front that may satisfy the limits; if few may, the likeliest."""
        chance = chances(self._space.designs(front.rows))
        least = min(_LIKELY, float(np.sort(chance)[-_CANDIDATES:][0]))
        keep = np.flatnonzero(chance >= least)
        return SumFront(rows=front.rows[keep], sums=front.sums[keep], exact=False)

    @cached_property
    def contexts(self) -> list[Context]:
        """Good settings of the free parameters, with the modelled losses of all groups."""
        free, split = self._space.base, self._space.split
        if split.free:
            completions = self._front_cache.complete_fronts(free)[0].designs
            completions = completions.take(np.arange(min(len(completions), _CONTEXTS)))
            free = completions if len(completions) else free
        return [self._context(free.take(np.array([row]))) for row in range(len(free))]

    def _context(self, free: Batch) -> Context:
        space = self._space
        base = self._known_losses(space.base, free)
        changes = np.nan_to_num(self._known_losses(space.varied, free) - base, nan=np.inf)
        tables = [np.asarray(own) for own in np.split(changes, space.starts[1:-1])]
        drawn = space.problem.space.sample(_CHECKED, space.problem.rng(0, 5))
        rows = space.rows_of(drawn)
        guess = base + sum(own[rows[:, place]] for place, own in enumerate(tables))
        true = self._known_losses(space.designs(rows), free)
        fine = np.isfinite(true).all(axis=1) & np.isfinite(guess).all(axis=1)
        gap = np.abs(true[fine] - guess[fine]).max(axis=0, initial=0.0)
        width = np.ptp(true[fine], axis=0) if fine.any() else np.zeros(true.shape[1])
        return Context(tables=tables, exact=bool((gap <= _EQUAL * width).all()))

    def _known_losses(self, batch: Batch, free: Batch) -> Floats:
        """Return the modelled losses, (n, b), of designs with another design's free parameters."""
        problem, split = self._space.problem, self._space.split
        if split.free:
            many = free.take(np.zeros(len(batch), dtype=np.int64))
            batch, _ = merge_settings(problem.space, batch, many, split.measured_parameters)
        columns = known_columns(problem, batch)
        objectives = [problem.objectives[place] for place in split.known]
        found = [
            (1.0 if one.goal == "minimize" else -1.0) * one.values(columns, len(batch))
            for one in objectives
        ]
        return np.column_stack(found) if found else np.zeros((len(batch), 0))
