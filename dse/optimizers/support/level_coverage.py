"""Coverage of levels: how often each value of categorical and branching parameters was tried."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

import numpy as np

from dse.core.batch import Batch
from dse.core.parameter import Choice, Finite, Real
from dse.core.space import DesignSpace
from dse.core.values import Floats, Ints, Value
from dse.errors import DesignError

ENOUGH = 2
"""Trials of a level after which its main effect is left to the model."""

_MOST_VALUES, _MOST_LEVELS = 16, 64
"""Most values of a parameter, and most levels of all parameters, that are covered."""
_PROBED = 1_024
"""Sample size for the share of a level among the legal designs."""
_RARE = 0.5
"""A level is rare if its share is below this fraction of an equal share."""


class LevelCoverage:
    """Levels of the parameters that split a space, and balanced draws of their designs.

    A level is one value of a categorical parameter, or of a discrete parameter that decides whether
    others are active. Uniform draws from a constrained space hardly reach a level with few legal
    designs, such as a branch with few parameters of its own; balanced draws do.

    Args:
        space: the space of the designs.
        names: parameters to cover; others are ignored.
        rng: generator of the sample that estimates the share of each level.
    """

    def __init__(self, space: DesignSpace, names: Iterable[str], rng: np.random.Generator) -> None:
        self._space = space
        self._rng = rng
        self.levels = _find_levels(space, frozenset(names))
        """Parameter name and value of each level."""

    def marks(self, batch: Batch) -> Floats:
        """Return 1 where a design has a level and 0 elsewhere, (n, levels)."""
        found = [_has_value(self._space, batch, *level) for level in self.levels]
        return np.column_stack(found).astype(float) if found else np.zeros((len(batch), 0))

    def lacking(self, attempted: Batch) -> Floats:
        """Return how many more trials each level needs to reach :data:`ENOUGH` trials, (levels,).

        Levels without any legal design need none.
        """
        seen = self.marks(attempted).sum(axis=0)
        return np.where(self._reachable, np.maximum(ENOUGH - seen, 0.0), 0.0)

    def rows_lacking(self, batch: Batch, lacking: Floats) -> Ints:
        """Return the indices of the designs with a level that lacks trials.

        If no design has such a level, the indices of all designs are returned.

        Args:
            batch: n designs.
            lacking: trials that each level lacks, (levels,), by :meth:`lacking`.
        """
        rows = np.flatnonzero(self.marks(batch) @ lacking > 0)
        return rows if len(rows) else np.arange(len(batch))

    def sample_rare(self, count: int, rng: np.random.Generator) -> Batch:
        """Draw up to ``count`` legal designs, an equal number for each rare level.

        A level is rare if it has less than half of an equal share of the legal designs. Without
        rare levels the batch is empty.
        """
        own = self._rare_spaces
        drawn = [space.sample(max(1, count // len(own)), rng).designs() for space in own]
        return self._space.batch([design for designs in drawn for design in designs])

    @cached_property
    def _reachable(self) -> Floats:
        """Whether each level has a legal design, (levels,)."""
        some = self.marks(self._probe).any(axis=0)
        return np.asarray(some | self._found, dtype=float)

    @cached_property
    def _probe(self) -> Batch:
        return self._space.sample(_PROBED, self._rng) if self.levels else self._space.batch([])

    @cached_property
    def _narrowed(self) -> dict[int, DesignSpace]:
        """Subspace of each rare level that has a legal design, by the level's index."""
        shares = self.marks(self._probe).mean(axis=0) if self.levels else np.zeros(0)
        names = [name for name, _ in self.levels]
        found: dict[int, DesignSpace] = {}
        for place, (name, value) in enumerate(self.levels):
            if shares[place] < _RARE / names.count(name):
                inner = self._space.fixed({name: value})
                if _has_designs(inner, self._rng):
                    found[place] = inner
        return found

    @property
    def _rare_spaces(self) -> list[DesignSpace]:
        return list(self._narrowed.values())

    @property
    def _found(self) -> np.ndarray:
        return np.array([place in self._narrowed for place in range(len(self.levels))], dtype=bool)


def count_first_settings(space: DesignSpace, names: frozenset[str]) -> int:
    """Return the number of space-filling designs before the first model: 6 to 20.

    The number is one per parameter in ``names`` or, if this is more, :data:`ENOUGH` per value of a
    categorical parameter among them, within these bounds.
    """
    own = [p for p in space.parameters if p.name in names]
    levels = [len(p.values) for p in own if isinstance(p, Choice)]
    return min(max(6, len(own), *(ENOUGH * count for count in levels)), 20)


def order_by_coverage(
    coverage: LevelCoverage, candidates: Batch, attempted: Batch, count: int
) -> Ints:
    """Return the indices of up to ``count`` candidates that cover the most lacking levels.

    Candidates are chosen greedily.

    Ties go to the earlier candidate, so that a space without levels keeps the candidates' order.

    Args:
        coverage: the levels.
        candidates: designs to choose from, in order of preference.
        attempted: designs that were tried or are pending.
        count: the number of designs to choose.
    """
    marks, lacking = coverage.marks(candidates), coverage.lacking(attempted)
    free = np.ones(len(candidates), dtype=bool)
    chosen: list[int] = []
    for _ in range(min(count, len(candidates))):
        gain = np.where(free, marks @ lacking, -1.0)
        best = int(np.argmax(gain))
        free[best] = False
        chosen.append(best)
        lacking = np.maximum(lacking - marks[best], 0.0)
    return np.array(chosen, dtype=np.int64)


def _find_levels(space: DesignSpace, names: frozenset[str]) -> tuple[tuple[str, Value], ...]:
    """Return the levels of categorical and branching parameters, except of large domains."""
    deciding = frozenset[str]().union(*(rule.names for rule in space.conditions.values()))
    found: list[tuple[str, Value]] = []
    for parameter in space.parameters:
        if isinstance(parameter, Real) or parameter.name not in names:
            continue
        if not (isinstance(parameter, Choice) or parameter.name in deciding):
            continue
        if 1 < len(parameter.values) <= _MOST_VALUES:
            found += [(parameter.name, value) for value in parameter.values]
    return tuple(found[:_MOST_LEVELS])


def _has_value(space: DesignSpace, batch: Batch, name: str, value: Value) -> np.ndarray:
    parameter = space.by_name[name]
    assert isinstance(parameter, Finite)
    codes = batch.columns[name].codes
    assert codes is not None
    same = [type(mine) is type(value) and mine == value for mine in parameter.values]
    return np.asarray(codes == same.index(True)) & ~batch.absent(name)


def _has_designs(space: DesignSpace, rng: np.random.Generator) -> bool:
    if space.count() == 0:
        return False
    try:
        return len(space.sample(1, rng)) > 0
    except DesignError:
        return False
