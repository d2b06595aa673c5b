"""Split of a problem into known and learnt quantities, and the parameters a measurement reads."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from dse.core.expressions.expression import Expression
from dse.core.objective import Limit
from dse.core.problem import Problem


@dataclass(frozen=True, kw_only=True)
class MeasuredSplit:
    """The objectives and limits of a problem, by where their values come from.

    ``known`` ones need no measurement; ``learnt`` ones do.
    """

    problem: Problem

    @cached_property
    def part(self) -> frozenset[str]:
        """The parameters that measurements read: the measured part of a design.

        An objective or a limit that joins a measurement with what depends on more is learnt as a
        whole, and all that it depends on belongs to the part.
        """
        sources = self.problem.sources.values()
        reads = frozenset[str]().union(*(s.reads for s in sources if s.kind == "measured"))
        for expression in self._expressions:
            reads |= self.behind(expression) if self._learnt(expression) else frozenset()
        return self._whole(reads)

    @cached_property
    def free(self) -> frozenset[str]:
        """All other parameters: a design that differs in these alone costs no measurement."""
        return frozenset(self.problem.space.by_name) - self.part

    @cached_property
    def known(self) -> tuple[int, ...]:
        """Places of the objectives that are modelled through and through."""
        return self._places(learnt=False)

    @cached_property
    def learnt(self) -> tuple[int, ...]:
        """Places of the objectives that a surrogate predicts."""
        return self._places(learnt=True)

    @cached_property
    def known_limits(self) -> tuple[Limit, ...]:
        """The limits that need no measurement."""
        return self._limits(learnt=False)

    @cached_property
    def learnt_limits(self) -> tuple[Limit, ...]:
        """The limits that a surrogate predicts."""
        return self._limits(learnt=True)

    def behind(self, expression: Expression) -> frozenset[str]:
        """The parameters that an expression depends on."""
        found: frozenset[str] = frozenset()
        for name in expression.names:
            source = self.problem.sources.get(name)
            found |= source.reads if source is not None else frozenset({name})
        return found & frozenset(self.problem.space.by_name)

    @property
    def _expressions(self) -> tuple[Expression, ...]:
        objectives = tuple(o.expression for o in self.problem.objectives)
        return objectives + tuple(limit.slack for limit in self.problem.limits)

    def _learnt(self, expression: Expression) -> bool:
        return bool(expression.names & self.problem.measured)

    def _places(self, *, learnt: bool) -> tuple[int, ...]:
        objectives = enumerate(self.problem.objectives)
        return tuple(place for place, o in objectives if self._learnt(o.expression) == learnt)

    def _limits(self, *, learnt: bool) -> tuple[Limit, ...]:
        return tuple(x for x in self.problem.limits if self._learnt(x.slack) == learnt)

    def _whole(self, reads: frozenset[str]) -> frozenset[str]:
        """A simplex is in the measured part as a whole: its members cannot differ alone."""
        legal = self.problem.space.legal
        for places in legal.simplexes:
            names = {legal.reals[place].name for place in places}
            reads |= names if names & reads else frozenset()
        return reads & frozenset(self.problem.space.by_name)
