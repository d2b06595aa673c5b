"""The exact front of a modelled problem, by streaming all legal designs past it."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from dse.core.batch import Column
from dse.core.design import Design
from dse.core.pareto import nondominated
from dse.core.problem import Problem
from dse.core.values import Floats, Ints, Mask

_SHIELD = 64
"""Members of the front that a batch is compared with before it is sorted in earnest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExactFront:
    """Designs that provably no other design beats, and the counts that prove it.

    Of designs with equal objectives the first is taken. Where none is feasible, ``designs`` holds
    the one that breaks the limits least, if any can exist at all.
    """

    designs: list[Design]
    feasible: int
    total: int

    @property
    def text(self) -> str:
        """What was proved."""
        if self.feasible:
            return (
                f"exact front of {self.feasible} feasible among {self.total} of "
                f"{self.total} legal designs"
            )
        asked = "; the one that breaks the limits least is asked" if self.designs else ""
        return f"no design is feasible among {self.total} of {self.total} legal designs{asked}"


def exact_front(problem: Problem) -> ExactFront:
    """The exact front of the problem; nothing of what it asks may need a measurement."""
    stream = _Stream(len(problem.objectives))
    for batch in problem.space.enumerate():
        known = problem.known(batch)
        columns = {
            **batch.columns,
            **{name: Column(values) for name, values in known.columns.items()},
        }
        losses = problem.losses(columns, len(batch))
        slacks = problem.slacks(columns, len(batch))
        possible: Mask = np.asarray(np.isfinite(losses).all(axis=1) & ~np.isnan(slacks).any(axis=1))
        possible[list(known.faults)] = False
        stream.add(losses, np.maximum(-slacks, 0).sum(axis=1), possible)
    places = stream.places if stream.feasible else stream.least
    return ExactFront(
        designs=problem.space.legal.at_indices(places).designs() if len(places) else [],
        feasible=stream.feasible,
        total=stream.total,
    )


@dataclass(slots=True)
class _Stream:
    """The front so far; what it holds besides is a few counts."""

    objectives: int
    total: int = 0
    feasible: int = 0
    least: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    places: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    _losses: Floats = field(init=False)
    _violation: float = np.inf

    def __post_init__(self) -> None:
        self._losses = np.zeros((0, self.objectives))

    def add(
        self,
        losses: Floats,  # (n, m)
        violations: Floats,  # (n,)
        possible: Mask,  # (n,), False where there are no metrics
    ) -> None:
        """Take in the next n designs of the enumeration."""
        kept = np.flatnonzero(possible & (violations == 0))
        self.feasible += len(kept)
        if not self.feasible:
            self._remember_least(np.where(possible, violations, np.inf))
        kept = kept[~self._shielded(losses[kept])]
        kept = kept[nondominated(losses[kept])]
        merged = np.concatenate([self._losses, losses[kept]])
        best = nondominated(merged)
        self.places = np.concatenate([self.places, self.total + kept])[best]
        self._losses = merged[best]
        self.total += len(losses)

    def _remember_least(self, violations: Floats) -> None:
        least = int(np.argmin(violations))
        if violations[least] < self._violation:
            self._violation = float(violations[least])
            self.least = np.array([self.total + least])

    def _shielded(self, losses: Floats) -> Mask:
        """Rows that one of a few members of the front beats: most rows, at the price of little."""
        beaten = np.zeros(len(losses), dtype=bool)
        if not len(self._losses) or not len(losses):
            return beaten
        spread = np.linspace(0, len(self._losses) - 1, _SHIELD).astype(int)
        for member in self._losses[np.unique(spread)]:
            left = np.flatnonzero(~beaten)
            beaten[left[(member <= losses[left]).all(axis=1)]] = True
        return beaten
