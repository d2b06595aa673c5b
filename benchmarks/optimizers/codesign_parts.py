"""A space in two parts: what measured metrics read, and the rest, which only models read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dse.core.batch import Batch, Column
from dse.core.design import Design, key_of
from dse.core.problem import Problem
from dse.core.space import DesignSpace
from dse.core.values import Ints, Value

Values = Mapping[str, Value]


@dataclass(frozen=True)
class Parts:
    """The parts of a problem's space; conditions and lists stay within one part."""

    problem: Problem

    @cached_property
    def names(self) -> frozenset[str]:
        """The parameters that measured metrics read."""
        return frozenset[str]().union(*(self.problem.reads(m) for m in self.problem.measured))

    @cached_property
    def measured(self) -> Batch:
        """All distinct measured settings, in the space's order."""
        return next(self._part(self.names).enumerate(1 << 22))

    @cached_property
    def rest(self) -> Batch:
        """All distinct remainders; rules across the parts are not yet applied."""
        return next(self._part(self._all - self.names).enumerate(1 << 22))

    def key(self, design: Values) -> str:
        """What a design is measured under."""
        return key_of({name: design[name] for name in self.names if name in design})

    def groups(self) -> Iterator[tuple[Ints, Batch]]:
        """Measured settings that models and rules cannot tell apart, with their legal designs.

        The designs, one for each legal remainder, have the first measured setting of the group.
        """
        seen = [np.asarray(self.measured.columns[name].codes) for name in sorted(self._seen)]
        _, group = np.unique(np.column_stack(seen), axis=0, return_inverse=True)
        for place in range(int(group.max()) + 1):
            rows = np.flatnonzero(group == place)
            yield rows, self._legal(int(rows[0]))

    def design(self, part: Values, whole: Values) -> Design:
        """The second design with the measured setting of the first."""
        kept = {name: value for name, value in whole.items() if name not in self.names}
        mixed = {**part, **kept}
        order = (parameter.name for parameter in self.problem.space.parameters)
        return Design({name: mixed[name] for name in order if name in mixed})

    @property
    def _all(self) -> frozenset[str]:
        return frozenset(self.problem.space.by_name)

    @property
    def _seen(self) -> frozenset[str]:
        """What models and rules across the parts see of a measured setting."""
        modelled = self.problem.asked - self.problem.measured
        read = frozenset[str]().union(*(self.problem.reads(name) for name in modelled))
        across = frozenset[str]().union(
            *(rule.names for rule in self.problem.space.constraints if rule.names - self.names)
        )
        return (read | across) & self.names

    def _part(self, names: frozenset[str]) -> DesignSpace:
        space = self.problem.space
        conditions = {n: rule for n, rule in space.conditions.items() if n in names}
        assert all(rule.names <= names for rule in conditions.values())
        return DesignSpace(
            parameters=tuple(p for p in space.parameters if p.name in names),
            conditions=conditions,
            constraints=tuple(rule for rule in space.constraints if rule.names <= names),
        )

    def _legal(self, row: int) -> Batch:
        """The designs with the measured setting of that row, one for each legal remainder."""
        size = len(self.rest)
        batch = self.rest.with_columns(
            {
                name: Column.coded(column.domain, np.full(size, np.asarray(column.codes)[row]))
                for name, column in self.measured.columns.items()
            }
        )
        kept = np.ones(size, dtype=bool)
        for rule in self.problem.space.constraints:
            if rule.names & self.names and rule.names - self.names:
                kept &= rule.holds(batch.columns, size, unknown=True)
        return batch if kept.all() else batch.take(np.flatnonzero(kept))
