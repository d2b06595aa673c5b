"""Space-filling (low-discrepancy) sequence of legal designs."""

from __future__ import annotations

from collections.abc import Callable, Collection

from scipy.stats import qmc

from dse.core.batch import Batch
from dse.core.design import Design
from dse.core.problem import Problem
from dse.core.space import DesignSpace
from dse.core.values import Mask
from dse.optimizers.support.unseen_designs import unseen

_BLOCK = 64
"""Points drawn at a time: a power of two keeps the sequence balanced."""
_DRY_BLOCKS = 4
"""Consecutive blocks without a new design after which the sequence ends."""


class EvenSequence:
    """Legal designs at the points of a scrambled Sobol sequence, each once.

    The sequence depends on the problem alone. Designs are cached, so that repeated queries cost
    nothing.

    Args:
        problem: problem whose space and seed define the sequence.
        keep: returns the mask of the designs of a batch that the sequence keeps, (n,); default:
            all.

    Source:
        Owen: Randomly Permuted (t,m,s)-Nets and (t,s)-Sequences, 1995; scipy's implementation
        with the direction numbers of Joe and Kuo, 2008.
    """

    def __init__(self, problem: Problem, keep: Callable[[Batch], Mask] | None = None) -> None:
        self._space = problem.space
        self._keep = keep
        self._points = qmc.Sobol(max(self._space.coordinates, 1), rng=problem.rng(0))
        self._drawn: dict[Design, None] = {}
        self._dry = _DRY_BLOCKS if self._space.count() == 0 else 0

    def first(self, count: int, taken: Collection[Design]) -> list[Design]:
        """Return the first ``count`` designs not in ``taken``; fewer if the sequence ends."""
        found = [design for design in self._drawn if design not in taken]
        while len(found) < count and self._dry < _DRY_BLOCKS:
            found += [design for design in self._block() if design not in taken]
        return found[:count]

    def _block(self) -> list[Design]:
        points = self._points.random(_BLOCK)[:, : self._space.coordinates]
        batch = self._space.at(points)
        if self._keep is not None:
            batch = batch.take(self._keep(batch))
        new = unseen(batch, self._drawn)
        self._drawn.update(dict.fromkeys(new))
        self._dry = 0 if new else self._dry + 1
        return new


def first_designs(space: DesignSpace) -> int:
    """Return the number of space-filling designs before the first model: 8 to 20.

    It is one per parameter within these bounds.
    """
    return min(max(len(space.parameters), 8), 20)
