"""Losses and limits that models compute for designs, without any measurement."""

from __future__ import annotations

import numpy as np

from dse.core.batch import Batch, Column
from dse.core.problem import Problem
from dse.core.values import Floats, Mask
from dse.optimizers.bayesian.measured_settings import MeasuredSplit
from dse.optimizers.bayesian.output_transform import LARGE, Magnitude
from dse.optimizers.exact.chunks import impossible_rows

_PROBED = 256
"""Sample size for the magnitude of a known loss."""


class ModelledLosses:
    """Modelled objectives and limits of a problem, evaluated for batches of designs.

    Args:
        problem: problem to optimise.
        split: the problem's objectives and limits, split into modelled and measured ones.
        bounded: map losses so that their products stay finite, see :class:`Magnitude`, and use
            the logarithms of objectives with a log scale.
    """

    def __init__(self, problem: Problem, split: MeasuredSplit, *, bounded: bool) -> None:
        self._bounded = bounded
        self._magnitudes: list[Magnitude] | None = None
        self._problem = problem
        self._split = split

    @property
    def magnitudes(self) -> list[Magnitude]:
        """Map of each modelled loss to a bounded range, so that products of losses stay finite.

        The maps are chosen from a sample of the space.
        """
        if self._magnitudes is None:
            self._magnitudes = []  # the sample itself is evaluated without maps
            if self._bounded and self._split.known:
                probe = self._problem.space.sample(_PROBED, self._problem.rng(0, 3))
                losses, _, fine, _ = self.compute(probe, np.ones(len(probe), dtype=bool))
                self._magnitudes = [_for_all(column) for column in losses[fine].T]
        return self._magnitudes

    def evaluate(self, batch: Batch, legal: Mask) -> tuple[Floats, Mask, Mask]:
        """Return modelled losses, (n, k), and two masks, (n,): admissible designs, and failed ones.

        An admissible design satisfies all modelled limits. A failed design is legal but has no
        value.
        """
        losses, slacks, fine, lost = self.compute(batch, legal)
        return losses, fine & (slacks >= 0).all(axis=1), lost

    def compute(self, batch: Batch, legal: Mask) -> tuple[Floats, Floats, Mask, Mask]:
        """Return modelled losses, (n, k), slacks of modelled limits, (n, l), and two masks, (n,).

        The first mask marks designs that have values, the second designs that failed: legal,
        without values, and not declared infeasible by an evaluator.
        """
        problem, split = self._problem, self._split
        rows = np.flatnonzero(legal)
        inside = batch.take(rows)
        known = problem.known(inside)
        columns = {
            **inside.columns,
            **{name: Column(values) for name, values in known.columns.items()},
        }
        size = len(inside)
        found = [self._loss(place, columns, size) for place in split.known]
        found += [limit.slacks(columns, size) for limit in split.known_limits]
        own = np.column_stack(found) if found else np.zeros((size, 0))
        own[list(known.failures)] = np.nan
        table = np.full((len(batch), own.shape[1]), np.nan)
        table[rows] = own
        cut = len(split.known)
        losses, slacks = table[:, :cut], table[:, cut:]
        fine = legal & np.isfinite(losses).all(axis=1) & ~np.isnan(slacks).any(axis=1)
        fine[rows[list(known.failures)]] = False
        lost = legal & ~fine
        if known.failures:
            lost[rows[impossible_rows(known, size)]] = False
        for place, magnitude in enumerate(self.magnitudes):
            losses[:, place] = magnitude(losses[:, place])
        return losses, slacks, fine, lost

    def _loss(self, place: int, columns: dict[str, Column], size: int) -> Floats:
        """Return the losses of a known objective; if bounded, on the objective's scale."""
        objective = self._problem.objectives[place]
        losses = objective.sign * objective.values(columns, size)
        return objective.on_scale(losses) if self._bounded else losses


def _for_all(losses: Floats) -> Magnitude:
    """Return a map of a loss to a bounded range, from a sample of the loss.

    Values outside the sample may be larger.
    """
    found = Magnitude.of(losses)
    return Magnitude(scale=found.scale, most=LARGE)
