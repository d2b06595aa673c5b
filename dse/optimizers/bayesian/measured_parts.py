"""Candidates for measurement: combinations of values of the parameters that measurements read.

Such a combination is a design's measured part. All measured parts are listed if possible, else
sampled.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dse.core.batch import Batch, concatenate_batches
from dse.core.problem import Problem
from dse.core.values import Floats
from dse.core.variation import cross_parents, mutate_designs
from dse.optimizers.bayesian.measured_split import MeasuredSplit
from dse.optimizers.bayesian.shared_parts import keys
from dse.optimizers.support.level_coverage import LevelCoverage

LISTED = 4_096
"""Most measured parts that are all valued at each suggestion; of more, a sample is."""

DRAWN = 1_024
"""Measured parts that are drawn at random if there are too many to list."""

BRED = 512
"""Offspring of each kind that are added to them."""

_RARE = 256
"""Candidate parts with rare levels, at the full number of draws."""


class MeasuredParts:
    """Candidate measured parts: combinations of values of the parameters that measurements read.

    Each is represented by one design that has these values.
    """

    def __init__(
        self, problem: Problem, roles: MeasuredSplit, coverage: LevelCoverage | None = None
    ) -> None:
        self._problem = problem
        self._coverage = coverage
        self._names = sorted(roles.part)
        self._part = roles.part
        self._list = self._list_designs()

    @property
    def all(self) -> Batch | None:
        """One design per possible measured part; ``None`` if there are too many to list."""
        return self._list

    def keys(self, batch: Batch) -> list[bytes]:
        """Return one key per design, equal where the measured parameters have equal values."""
        return keys(batch, self._names)

    def distinct(self, batch: Batch, taken: set[bytes]) -> Batch:
        """Return one design per measured part in the batch, without parts in ``taken``.

        ``taken`` holds keys.
        """
        found: dict[bytes, int] = {}
        for row, key in enumerate(self.keys(batch)):
            if key not in taken:
                found.setdefault(key, row)
        return batch.take(np.fromiter(found.values(), dtype=np.int64, count=len(found)))

    def pool(
        self,
        best: Batch,
        taken: set[bytes],
        rng: np.random.Generator,
        *,
        drawn: int = DRAWN,
        bred: int = BRED,
    ) -> Batch:
        """Return candidate measured parts: all of them, or random draws and offspring.

        If there are too many parts to list, some are drawn at random, a share of them for each rare
        level (a parameter value that few designs have), and others are offspring of the best parts.

        Args:
            best: designs with the best parts.
            taken: keys of the parts to leave out.
            rng: generator of the draws.
            drawn: number of random draws; if below :data:`DRAWN`, even parts that can be listed are
                sampled.
            bred: number of offspring of each of three kinds.
        """
        if self._list is not None:
            found_all = self.distinct(self._list, taken)
            if drawn >= DRAWN or len(found_all) <= drawn:
                return found_all
            return found_all.take(np.sort(rng.choice(len(found_all), size=drawn, replace=False)))
        space = self._problem.space
        found = [space.sample(drawn, rng)]
        if self._coverage is not None:
            found.append(self._coverage.sample_rare(min(_RARE, drawn // 4), rng))
        if len(best):
            mothers, fathers = rng.integers(len(best), size=(2, bred))
            children = cross_parents(space, best.take(mothers), best.take(fathers), rng)
            found += [children, mutate_designs(space, children, rng)]
            found += [mutate_designs(space, best.take(np.arange(bred) % len(best)), rng)]
        return self.distinct(concatenate_batches([batch for batch in found if len(batch)]), taken)

    def around(
        self, best: Batch, width: float, each: int, taken: set[bytes], rng: np.random.Generator
    ) -> Batch:
        """Return measured parts near those of the best designs, by mutation and Gaussian steps.

        Args:
            best: designs to start from.
            width: standard deviation of the Gaussian steps, as a fraction of a real parameter's
                range.
            each: number of moves of each kind from each design.
            taken: keys of the parts to leave out.
            rng: generator of the moves.
        """
        space = self._problem.space
        many = best.take(np.repeat(np.arange(len(best)), each))
        found = [mutate_designs(space, many, rng)]
        if space.legal.reals:
            found.append(self._shaken(many, width, rng))
        return self.distinct(
            concatenate_batches([batch for batch in found if len(batch)] or [best]), taken
        )

    def _shaken(self, batch: Batch, width: float, rng: np.random.Generator) -> Batch:
        legal = self._problem.space.legal
        shares: Floats = legal.shares(batch)
        moved = rng.random(shares.shape) < max(0.5, 1 / max(shares.shape[1], 1))
        shares = np.clip(shares + moved * width * rng.standard_normal(shares.shape), 0, 1)
        codes = [legal.codes(component, batch) for component in legal.components]
        return legal.assemble(codes, shares)

    def _list_designs(self) -> Batch | None:
        space = self._problem.space
        count = space.count()
        if count is not None and count <= LISTED:
            return (
                self.distinct(concatenate_batches(space.enumerate()), set())
                if count
                else space.batch([])
            )
        legal = space.legal
        if any(real.name in self._part for real in legal.reals) or legal.mixed:
            return None
        choices: list[np.ndarray] = []
        total = 1
        for component in legal.components:
            own = [place for place, name in enumerate(component.names) if name in self._part]
            rows = component.rows
            if rows is None and own:
                return None
            if rows is None:
                rows = component.sample(1, self._problem.rng(0))
            firsts = np.unique(rows[:, own], axis=0, return_index=True)[1] if own else [0]
            choices.append(rows[np.sort(firsts)])
            total *= len(choices[-1])
            if total > LISTED:
                return None
        return self._product(choices, total)

    def _product(self, choices: Sequence[np.ndarray], total: int) -> Batch:
        places, codes = np.arange(total), []
        for rows in reversed(choices):
            codes.append(rows[places % len(rows)])
            places = places // len(rows)
        legal = self._problem.space.legal
        return legal.assemble(codes[::-1], np.full((total, len(legal.reals)), 0.5))
