"""Exact front of a problem whose parameter groups interact only in objectives and limits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from dse.core.design import Design
from dse.core.problem import Problem
from dse.core.proof import Coverage
from dse.core.trial import Event, Trial
from dse.errors import StudyError
from dse.optimizers.exact.counting import count_coverage
from dse.optimizers.exact.exact_front import exact_front, feasible_words
from dse.optimizers.exact.group_rows import NothingPossibleError, pieces_of
from dse.optimizers.exact.joined_fronts import front_of
from dse.optimizers.exact.separable_groups import cannot, groups_of
from dse.protocols import OptimizerTraits

__all__ = ["Decompose", "Decomposed", "cannot", "find_exact_front"]

SEARCHED = 1_000_000
"""Most designs that are all enumerated if random draws found none to evaluate the groups with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decomposed:
    """Exact front found by decomposition into parameter groups, with counts of designs.

    A group is a set of parameters that no rule or metric couples to the others. Of designs with
    equal objectives one is kept. If no design is feasible, ``designs`` holds the one with the least
    constraint violation, if any design has metrics.
    """

    designs: list[Design]
    feasible: bool
    coverage: Coverage
    groups: int
    rows: int = 0
    compared: int = 0

    @property
    def total(self) -> int:
        """Number of legal designs."""
        return self.coverage.legal


class Decompose:
    """Optimizer that suggests the exact front of trillions of designs, by parameter group.

    Parameters form groups such that no rule and no metric reads two of them. In each group, a
    combination of values is pruned if another one dominates it whatever the other groups choose;
    the remaining ones are combined. Once the front is reported, an event of kind ``exact`` states
    how many designs it covers; if designs failed, it is ``exact over``, with their count and an
    example.

    Raises:
        StudyError: the problem cannot be decomposed; the reason names what couples its parts. If
            too many combinations remain after pruning, the first ``ask`` raises it.
    """

    traits = OptimizerTraits(batch=1_024, exhaustive=True)

    def __init__(self, problem: Problem) -> None:
        reason = cannot(problem)
        if reason:
            raise StudyError(
                f"the problem cannot be decomposed: {reason}",
                hint="use optimizer exhaustive, nsga2 or qlognehvi",
            )
        self._problem = problem
        self._finished_designs: set[Design] = set()
        self._front: Decomposed | None = None
        self._proved = False

    def ask(self, count: int, pending: Sequence[Design] = ()) -> list[Design]:
        if self._front is None:
            self._front = find_exact_front(self._problem)
        taken = self._finished_designs.union(pending)
        return [design for design in self._front.designs if design not in taken][:count]

    def tell(self, finished: Sequence[Trial]) -> None:
        self._finished_designs.update(trial.design for trial in finished)

    def events(self) -> list[Event]:
        if (
            self._proved
            or self._front is None
            or not self._finished_designs.issuperset(self._front.designs)
        ):
            return []
        self._proved = True
        return [self._front.coverage.event(len(self._finished_designs))]

    @property
    def ended(self) -> str:
        """Reason to end the study, with the number of designs covered; empty before that."""
        front = self._front
        is_complete = front is not None and self._finished_designs.issuperset(front.designs)
        return front.coverage.text if front is not None and is_complete else ""


def find_exact_front(problem: Problem) -> Decomposed:
    """Return the exact front of a problem that decomposes into independent parameter groups.

    The function :func:`~dse.optimizers.exact.separable_groups.cannot` states whether a problem
    decomposes.

    Raises:
        StudyError: too many combinations are left to compare, or no design can exist.
    """
    groups = groups_of(problem)
    legal = problem.space.count() or 0
    if not legal:
        return Decomposed(
            designs=[], feasible=False, coverage=Coverage(legal=0), groups=len(groups)
        )
    try:
        pieces = pieces_of(problem, groups)
    except NothingPossibleError:
        if legal > SEARCHED:
            raise
        whole = exact_front(problem)
        return Decomposed(
            designs=whole.designs,
            feasible=whole.feasible > 0,
            coverage=whole.coverage,
            groups=len(groups),
        )
    front, found = front_of(problem, pieces)
    designs = front.designs(problem)
    coverage = count_coverage(problem, pieces)
    rows = sum(len(piece) for piece in pieces)
    how = (
        f"{rows:,} rows of {len(groups)} independent groups of parameters cover all designs, "
        f"{found.total:,} combinations of the rows left by dominance pruning were compared"
    )
    none = "" if found.feasible else feasible_words(problem, 0, designs)
    note = "; ".join(filter(None, [none, how]))
    return Decomposed(
        designs=designs,
        feasible=found.feasible > 0,
        coverage=replace(coverage, note=note),
        groups=len(groups),
        rows=rows,
        compared=found.total,
    )
