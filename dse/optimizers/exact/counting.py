"""Counts of a decomposed problem's designs that have a value, failed or cannot exist."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from dse.core.design import Design
from dse.core.problem import Problem
from dse.core.proof import Coverage, design_failure_text
from dse.optimizers.exact.chunks import BATCH, judge_with_metrics
from dse.optimizers.exact.dominance_pruning import (
    groups_in,
    known_everywhere,
    minimized_formulas,
    ranges_in,
)
from dse.optimizers.exact.group_rows import GroupCounts, Piece
from dse.optimizers.exact.monotonicity import monotone_range, single_group_terms

LISTED = 20_000_000
"""Most combinations that are enumerated if formulas may be undefined for some."""


def count_coverage(problem: Problem, pieces: Sequence[Piece]) -> Coverage:
    """Count designs with metrics, failed and infeasible ones, from each parameter group's counts.

    A group is a set of parameters that no rule or metric couples to the others. A design consists
    of one value combination from each group. It has metrics if each of its combinations has, and
    cannot exist if one of them cannot. If a formula may be undefined although all metrics are
    known, the designs are enumerated; if there are more than :data:`LISTED`, the count of failed
    designs is a lower bound.

    Args:
        problem: problem to count.
        pieces: for each group, all of its value combinations that have metrics.
    """
    legal = problem.space.count() or 0
    rows = [piece.rows or GroupCounts() for piece in pieces]
    metrics = math.prod(one.fine for one in rows)
    possible = math.prod(one.fine + one.failed for one in rows)
    example = next((one.example for one in rows if one.example is not None), None)
    undefined, at_least = 0, False
    if _may_lack_value(problem, pieces):
        listed = math.prod(map(len, pieces))
        at_least = listed > LISTED
        if not at_least:
            undefined, place = _count_without_value(problem, pieces)
            undefined *= metrics // listed if listed else 1
            example = example or _design(problem, pieces, place)
    failed = possible - metrics + undefined
    return Coverage(
        legal=legal,
        impossible=legal - possible,
        failed=failed,
        at_least=at_least,
        example=design_failure_text(problem, example) if example is not None else "",
    )


def _may_lack_value(problem: Problem, pieces: Sequence[Piece]) -> bool:
    """Return whether an objective or limit can be non-finite although all metrics are known."""
    formulas = minimized_formulas(problem)
    groups = groups_in(pieces)
    ranges = ranges_in(formulas, pieces)
    terms = {term for node in formulas for term in single_group_terms(node, groups)}
    if not all(known_everywhere(term, pieces, groups) for term in terms):
        return True
    ends = [monotone_range(node, ranges) for node in formulas]
    return not all(math.isfinite(one.low) and math.isfinite(one.high) for one in ends)


def _count_without_value(problem: Problem, pieces: Sequence[Piece]) -> tuple[int, int]:
    """Return how many designs have an undefined objective or limit, and the first's index.

    The index is -1 if there is no such design.
    """
    count, first = 0, -1
    total = math.prod(map(len, pieces))
    for start in range(0, total, BATCH):
        whole = _combine_rows(pieces, np.arange(start, min(start + BATCH, total)))
        lost = np.flatnonzero(~judge_with_metrics(problem, whole.asked)[2])
        count += len(lost)
        if first < 0 and len(lost):
            first = start + int(lost[0])
    return count, first


def _combine_rows(pieces: Sequence[Piece], places: np.ndarray) -> Piece:
    """Return the designs with these indices in the product of the groups' value combinations.

    The combinations of the last group vary fastest.
    """
    rows = np.unravel_index(places, [len(piece) for piece in pieces])
    first, *others = (piece.take(own) for piece, own in zip(pieces, rows, strict=True))
    for other in others:
        first = first.beside(other)
    return first


def _design(problem: Problem, pieces: Sequence[Piece], place: int) -> Design | None:
    if place < 0:
        return None
    return _combine_rows(pieces, np.array([place])).designs(problem)[0]
