"""Value combinations of each independent parameter group, with the columns formulas read.

A group is a set of parameters that no rule or metric couples to the others; a row is one of its
value combinations.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dse.core.batch import Batch, Column, concatenate_batches
from dse.core.design import Design
from dse.core.legal_set.decision_diagram import Codes
from dse.core.metric import Failure
from dse.core.problem import Problem
from dse.core.values import Ints
from dse.errors import StudyError
from dse.optimizers.exact.chunks import BATCH, impossible_rows
from dse.optimizers.exact.separable_groups import SeparableGroup, asked_names

_WORD = 2**62
"""Cap on component sizes, to fit 64 bits; only groups that nothing reads can be that large."""

_DRAWS = (1_024, 65_536)
"""Sample sizes of the search for a design that has metrics."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupCounts:
    """Numbers of value combinations of a parameter group: with metrics, and failed.

    The remaining combinations cannot exist. In a group that no formula or evaluator reads, one
    combination is evaluated and counts for all.
    """

    fine: int = 0
    failed: int = 0
    example: Design | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """Value combinations of one or more parameter groups, with the columns that formulas read.

    ``places`` are the indices of each combination's values in every group, (n, groups). ``rows``
    counts all combinations of a single group, including those left out.
    """

    groups: tuple[SeparableGroup, ...]
    places: Ints  # (n, groups)
    asked: Batch  # n rows
    rows: GroupCounts | None = None

    def __len__(self) -> int:
        return len(self.places)

    def stream(self) -> Iterator[Piece]:
        """Yield the value combinations of the parameter groups in batches."""
        for start in range(0, len(self), BATCH):
            yield self.take(np.arange(start, min(start + BATCH, len(self))))

    def take(self, rows: Ints) -> Piece:
        """Return a subset of the value combinations, given by indices."""
        return Piece(groups=self.groups, places=self.places[rows], asked=self.asked.take(rows))

    def beside(self, other: Piece) -> Piece:
        """Join each value combination with the one at the same index of other parameter groups."""
        return Piece(
            groups=(*self.groups, *other.groups),
            places=np.hstack([self.places, other.places]),
            asked=self.asked.with_columns(other.asked.columns),
        )

    def designs(self, problem: Problem) -> list[Design]:
        """Return the value combinations as designs; together they must cover all parameters."""
        legal = problem.space.legal
        codes: dict[int, Codes] = {}
        for at, group in enumerate(self.groups):
            codes |= _codes(problem, group, self.places[:, at])
        every = [codes[number] for number in range(len(legal.components))]
        return legal.assemble(every, np.zeros((len(self), 0))).designs()


@dataclass(frozen=True, slots=True)
class Pairs:
    """All pairs of value combinations of two sets of parameter groups, generated in batches."""

    left: Piece
    right: Piece

    def __len__(self) -> int:
        return len(self.left) * len(self.right)

    def take(self, places: Ints) -> Piece:
        """Return the pairs with the given indices, each as one combination of values."""
        left, right = np.divmod(places, len(self.right))
        return self.left.take(left).beside(self.right.take(right))

    def stream(self) -> Iterator[Piece]:
        """Yield all pairs of value combinations, in batches of bounded size."""
        for start in range(0, len(self), BATCH):
            yield self.take(np.arange(start, min(start + BATCH, len(self))))


class NothingPossibleError(StudyError):
    """Raised if no design with metrics was found.

    The evaluation of one parameter group needs such a design, whose values all other groups keep.
    """


def pieces_of(problem: Problem, groups: Sequence[SeparableGroup]) -> list[Piece]:
    """Return the value combinations of each parameter group that have metrics.

    Each group is evaluated with fixed values in all others. Since no evaluator reads two groups,
    the metrics of a combination hold for all designs that contain it.

    Raises:
        NothingPossibleError: no design was found that has metrics.
    """
    whole = _possible(problem)
    return [_piece(problem, group, whole) for group in groups]


def _possible(problem: Problem) -> list[Codes]:
    """Return a random design that evaluates without a failure, as one code array per component.

    A component is a set of parameters that rules couple; the codes have shape (1, k).
    """
    legal = problem.space.legal
    failures: Mapping[int, Failure] = {}
    for count in _DRAWS:
        batch = legal.sample(count, problem.rng(0))
        failures = problem.known(batch).failures
        fine = _without(failures, len(batch))
        if len(fine):
            row = batch.take(fine[:1])
            return [legal.codes(component, row) for component in legal.components]
    raise NothingPossibleError(
        f"of {_DRAWS[-1]:,} random designs none can exist: {failures[0].reason}",
        hint="state the rule that they break as a constraint of the space",
    )


def _piece(problem: Problem, group: SeparableGroup, whole: Sequence[Codes]) -> Piece:
    legal = problem.space.legal
    asked = sorted(group.names & asked_names(problem))
    count = group.count if group.read else 1
    alike = group.count // count
    kept, batches = list[Ints](), list[Batch]()
    failed, example = 0, None
    for start in range(0, count, BATCH):
        places = np.arange(start, min(start + BATCH, count))
        codes = {at: np.repeat(one, len(places), axis=0) for at, one in enumerate(whole)}
        codes |= _codes(problem, group, places)
        batch = legal.assemble(list(codes.values()), np.zeros((len(places), 0)))
        known = problem.known(batch)
        columns = {name: Column(values) for name, values in known.columns.items()}
        fine = _without(known.failures, len(places))
        lost = known.failures.keys() - np.flatnonzero(impossible_rows(known, len(places))).tolist()
        failed += len(lost)
        if lost and example is None:
            example = batch.design(min(lost))
        kept.append(places[fine])
        batch = batch.with_columns(columns).renamed({name: name for name in asked})
        batches.append(batch.take(fine))
    found = np.concatenate(kept)
    return Piece(
        groups=(group,),
        places=found[:, np.newaxis],
        asked=concatenate_batches(batches) if any(map(len, batches)) else batches[0],
        rows=GroupCounts(fine=alike * len(found), failed=alike * failed, example=example),
    )


def _codes(problem: Problem, group: SeparableGroup, places: Ints) -> dict[int, Codes]:
    """Return the codes of a group's combinations with these indices, by component.

    The last component varies fastest.
    """
    codes: dict[int, Codes] = {}
    rest = places
    for number in reversed(group.components):
        component = problem.space.legal.components[number]
        size = min(component.bound, _WORD)
        rest, rank = np.divmod(rest, size)
        codes[number] = component.at_ranks(rank)
    return codes


def _without(failures: Mapping[int, Failure], size: int) -> Ints:
    """Return the indices of the combinations without a failure."""
    fine = np.ones(size, dtype=bool)
    fine[list(failures)] = False
    return np.flatnonzero(fine)
