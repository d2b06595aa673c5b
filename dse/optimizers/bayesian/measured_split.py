"""Split of objectives and limits into modelled and measured ones, with their parameters."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from dse.core.expressions.expression import Expression
from dse.core.objective import Limit
from dse.core.problem import Problem


@dataclass(frozen=True, kw_only=True)
class MeasuredSplit:
    """Split of objectives and limits into modelled (``known``) and measured (``learnt``) ones.

    The known ones are computed by models; the learnt ones depend on measurements and get a
    surrogate.
    """

    problem: Problem

    @cached_property
    def part(self) -> frozenset[str]:
        """Parameters that measurements read; their values are a design's measured part.

        An objective or a limit that combines a measured metric with others is learnt as a single
        function, so all parameters that it depends on are included.
        """
        sources = self.problem.sources.values()
        reads = frozenset[str]().union(*(s.reads for s in sources if s.kind == "measured"))
        for expression in self._expressions:
            reads |= self.behind(expression) if self._learnt(expression) else frozenset()
        return self._whole(reads)

    @cached_property
    def free(self) -> frozenset[str]:
        """Parameters that no measurement reads, so that one measurement serves all their values."""
        return frozenset(self.problem.space.by_name) - self.part

    @cached_property
    def known(self) -> tuple[int, ...]:
        """Indices of the objectives that need no measurement."""
        return self._places(learnt=False)

    @cached_property
    def learnt(self) -> tuple[int, ...]:
        """Indices of the objectives that a surrogate predicts."""
        return self._places(learnt=True)

    @cached_property
    def known_limits(self) -> tuple[Limit, ...]:
        """Limits that need no measurement."""
        return self._limits(learnt=False)

    @cached_property
    def learnt_limits(self) -> tuple[Limit, ...]:
        """Limits that a surrogate predicts."""
        return self._limits(learnt=True)

    def behind(self, expression: Expression) -> frozenset[str]:
        """Return the parameters that an expression depends on, directly or through metrics."""
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
        """Extend the set of parameters by all members of each simplex that has a member in it.

        Members of a simplex sum to a constant, so none can vary alone.
        """
        legal = self.problem.space.legal
        for places in legal.simplexes:
            names = {legal.reals[place].name for place in places}
            reads |= names if names & reads else frozenset()
        return reads & frozenset(self.problem.space.by_name)
