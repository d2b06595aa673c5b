"""Legal designs over which the gap of a study is computed: all of them, or a sample."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dse.core.batch import Batch, Column, concatenate_batches
from dse.core.design import Design
from dse.core.problem import Problem
from dse.core.values import Floats, Ints, Mask
from dse.core.variation import cross_parents, mutate_designs
from dse.optimizers.bayesian.measured_settings import MeasuredSplit, firsts, keys
from dse.optimizers.support.constraints import known_admissible

LISTED = 20_000
"""Most legal designs that are all considered; of a larger space, a sample."""

DRAWN = 4_096
"""Number of designs drawn uniformly from a space that is too large to list."""

BRED = 1_024
"""Number of designs bred from the best ones in each round of a search in such a space."""

_STREAM = 977
"""Number that separates these random draws from those of the optimizers."""


def is_listed(problem: Problem) -> bool:
    """Return whether the gap considers all legal designs, and not only a sample."""
    count = problem.space.count()
    return count is not None and count <= LISTED


class GapCandidates:
    """Legal designs that keep all modelled limits, with their modelled losses.

    Designs with equal values of the parameters that measurements read share all measured metrics,
    so surrogates need to predict only one design per combination of these values.

    Args:
        problem: the problem.
        split: the problem's objectives and limits, split into modelled and measured ones.
        batch: n legal designs.
    """

    def __init__(self, problem: Problem, split: MeasuredSplit, batch: Batch) -> None:
        rows = np.flatnonzero(known_admissible(problem, batch)) if len(batch) else np.arange(0)
        batch = batch.take(rows)
        losses = _modelled_losses(problem, split, batch)
        fine = np.flatnonzero(np.isfinite(losses).all(axis=1))
        self._split = split
        self.batch = batch.take(fine)
        self.known: Floats = losses[fine]  # (n, b), of the modelled objectives
        self.settings = keys(self.batch, sorted(split.measured_parameters))
        places = firsts(self.settings)
        order = {self.settings[row]: place for place, row in enumerate(places.tolist())}
        self.distinct = self.batch.take(places)
        self.owners: Ints = np.array([order[setting] for setting in self.settings], dtype=np.int64)

    def __len__(self) -> int:
        return len(self.batch)

    def losses(
        self,
        learnt: Floats,  # (p, a), of each distinct measured setting
    ) -> Floats:
        """Return all losses of the designs, (n, m), given the losses of the measured objectives."""
        found = np.zeros((len(self), len(self._split.known) + len(self._split.learnt)))
        found[:, list(self._split.known)] = self.known
        found[:, list(self._split.learnt)] = learnt[self.owners]
        return found

    def are_new(self, taken: Sequence[Design]) -> Mask:
        """Return the mask of the candidates that are not in ``taken``, (n,)."""
        names = sorted(self.batch.names)
        gone = set(keys(self._like(taken), names))
        return np.array([key not in gone for key in keys(self.batch, names)], dtype=bool)

    def _like(self, designs: Sequence[Design]) -> Batch:
        return self._split.problem.space.batch(designs)


def list_candidates(problem: Problem, split: MeasuredSplit) -> GapCandidates:
    """Return all legal designs that keep the modelled limits, of a space small enough to list."""
    batches = list(problem.space.enumerate())
    batch = concatenate_batches(batches) if batches else problem.space.batch([])
    return GapCandidates(problem, split, batch)


def sample_designs(problem: Problem, finished: int) -> Batch:
    """Draw legal designs uniformly.

    Args:
        problem: the problem.
        finished: number of finished trials, which fixes the draws.
    """
    return problem.space.sample(DRAWN, problem.rng(finished, _STREAM))


def breed_designs(problem: Problem, best: Batch, finished: int, step: int) -> Batch:
    """Return legal designs near the best designs, by crossover and mutation.

    Args:
        problem: the problem.
        best: k designs, at least one.
        finished: number of finished trials, which fixes the draws.
        step: index of the search's round, which fixes the draws, too.
    """
    rng = problem.rng(finished, _STREAM + 1 + step)
    mothers, fathers = rng.integers(len(best), size=(2, BRED // 2))
    children = cross_parents(problem.space, best.take(mothers), best.take(fathers), rng)
    moved = mutate_designs(problem.space, best.take(np.arange(BRED // 2) % len(best)), rng)
    found = [children, mutate_designs(problem.space, children, rng), moved]
    return concatenate_batches([batch for batch in found if len(batch)])


def _modelled_losses(problem: Problem, split: MeasuredSplit, batch: Batch) -> Floats:
    """Return the losses of the modelled objectives, (n, b); NaN where a model has no value."""
    known = problem.known(batch)
    columns = {**batch.columns, **{name: Column(v) for name, v in known.columns.items()}}
    chosen = [problem.objectives[place] for place in split.known]
    losses = np.zeros((len(batch), len(chosen)))
    for place, objective in enumerate(chosen):
        losses[:, place] = objective.sign * objective.values(columns, len(batch))
    losses[list(known.failures)] = np.nan
    return losses
