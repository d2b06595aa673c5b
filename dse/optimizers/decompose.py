"""The exact front of a problem whose groups of parameters meet only in its formulas."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dse.core.design import Design
from dse.core.problem import Problem
from dse.core.trial import Event, Trial
from dse.errors import StudyError
from dse.optimizers.combination import front_of
from dse.optimizers.groups import cannot, groups_of
from dse.optimizers.pieces import pieces_of

__all__ = ["Decompose", "Decomposed", "cannot", "decomposed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Decomposed:
    """The exact front, and the counts that tell how it was found.

    Of designs with equal objectives one is taken. Where none is feasible, ``designs`` holds the
    one that breaks the limits least, if any can exist at all.
    """

    designs: list[Design]
    feasible: bool
    total: int
    groups: int
    rows: int
    compared: int

    @property
    def text(self) -> str:
        """What was proved."""
        every = f"all {self.total:,} legal designs"
        how = (
            f"{self.rows:,} rows of {self.groups} independent groups of parameters speak for them, "
            f"{self.compared:,} combinations of what no other row makes needless were compared"
        )
        if self.feasible:
            return f"exact front of {every}: {how}"
        asked = "; the one that breaks the limits least is asked" if self.designs else ""
        return f"no design is feasible among {every}{asked}: {how}"


class Decompose:
    """Asks the exact front, found group by group: of a trillion designs in seconds.

    Parameters fall into groups where no rule and no metric reads two of them. Of each group only
    rows go on that no other row beats whatever is chosen beside it; what goes on is combined. Once
    all of the front is told, an event of kind ``exact`` says how many designs it speaks for.

    Raises:
        StudyError: the problem cannot be taken apart; the reason names what ties it together. That
            too many combinations are left is told by the first ``ask``.
    """

    batch = 1_024

    def __init__(self, problem: Problem) -> None:
        reason = cannot(problem)
        if reason:
            raise StudyError(
                f"the problem cannot be taken apart: {reason}",
                hint="use optimizer exhaustive, nsga2 or qlognehvi",
            )
        self._problem = problem
        self._told: set[Design] = set()
        self._front: Decomposed | None = None
        self._proved = False

    def ask(self, count: int, pending: Sequence[Design] = ()) -> list[Design]:
        if self._front is None:
            self._front = decomposed(self._problem)
        taken = self._told.union(pending)
        return [design for design in self._front.designs if design not in taken][:count]

    def tell(self, finished: Sequence[Trial]) -> None:
        self._told.update(trial.design for trial in finished)

    def events(self) -> list[Event]:
        if self._proved or self._front is None or not self._told.issuperset(self._front.designs):
            return []
        self._proved = True
        return [Event(kind="exact", text=self._front.text, told=len(self._told))]


def decomposed(problem: Problem) -> Decomposed:
    """The exact front of a problem that :func:`~dse.optimizers.groups.cannot` has nothing against.

    Raises:
        StudyError: too many combinations are left to compare, or nothing can exist.
    """
    groups = groups_of(problem)
    total = problem.space.count() or 0
    if not total:
        return Decomposed(
            designs=[], feasible=False, total=0, groups=len(groups), rows=0, compared=0
        )
    pieces = pieces_of(problem, groups)
    front, found = front_of(problem, pieces)
    return Decomposed(
        designs=front.designs(problem),
        feasible=found.feasible > 0,
        total=total,
        groups=len(groups),
        rows=sum(len(piece) for piece in pieces),
        compared=found.total,
    )
