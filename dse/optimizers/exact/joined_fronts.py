"""Exact front from pruned groups of value combinations, joined two at a time."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from dse.core.expressions.printer import format_node
from dse.core.expressions.syntax import Node, children, names_in
from dse.core.problem import Problem
from dse.errors import StudyError
from dse.optimizers.exact.chunks import judge_with_metrics
from dse.optimizers.exact.dominance_pruning import (
    Groups,
    groups_in,
    minimized_formulas,
    prune_rows,
    ranges_in,
    trends_of,
)
from dse.optimizers.exact.group_rows import Pairs, Piece
from dse.optimizers.exact.monotonicity import Trend, Trends, single_group_terms
from dse.optimizers.exact.running_front import RunningFront, found_in

MOST_PAIRS = 200_000_000
"""Most combinations of pruned pieces to compare, which takes up to a minute."""


def front_of(problem: Problem, pieces: Sequence[Piece]) -> tuple[Piece, RunningFront]:
    """Return the front over all combinations of the parameter groups' values, with counts.

    The groups of parameters are joined and pruned two at a time. The counts are those of the last
    join. If no combination is feasible, the front is the combination of least constraint violation.

    Raises:
        StudyError: too many combinations are left after pruning.
    """
    formulas = minimized_formulas(problem)
    trends = trends_of(formulas, groups_in(pieces), ranges_in(formulas, pieces))
    left = [prune_rows(piece, trends) for piece in pieces]
    while len(left) > 2:
        left = _one_fewer(formulas, left, trends)
    pairs = _check_pairs(Pairs(*left), trends)
    found = RunningFront.nothing(len(problem.objectives))
    for piece in pairs.stream():
        losses, violations, possible = judge_with_metrics(problem, piece.asked)
        first, beaters = found.total, found.losses
        found = found.joined(found_in(losses, violations, possible, first=first, beaters=beaters))
    places = found.places
    if not found.feasible and found.least >= 0:
        places = np.array([found.least])
    return pairs.take(places), found


def _one_fewer(formulas: Sequence[Node], pieces: Sequence[Piece], trends: Trends) -> list[Piece]:
    """Join and prune the value combinations of two groups, so that one group fewer is left.

    Among the pairs of groups that one subexpression of a formula reads, the pair is joined that
    leaves the fewest subexpressions to compare.
    """
    groups = groups_in(pieces)

    def price(pair: tuple[int, int]) -> tuple[int, int]:
        together = _together(groups, pair)
        terms = {term for node in formulas for term in single_group_terms(node, together)}
        own = [term for term in terms if together[names_in(term)[0].name] == pair[0]]
        return len(own), len(pieces[pair[0]]) * len(pieces[pair[1]])

    meeting = {pair for node in formulas for pair in _meeting(node, groups)}
    one, other = min(meeting or combinations(range(len(pieces)), 2), key=price)
    pairs = _check_pairs(Pairs(pieces[one], pieces[other]), trends)
    known = ranges_in(formulas, pieces)
    rest = [piece for place, piece in enumerate(pieces) if place not in (one, other)]
    return [prune_rows(pairs, trends_of(formulas, _together(groups, (one, other)), known)), *rest]


def _together(groups: Groups, pair: tuple[int, int]) -> Groups:
    """Return the group index of each name after the second group is merged into the first."""
    return {name: pair[0] if group == pair[1] else group for name, group in groups.items()}


def _meeting(node: Node, groups: Groups) -> set[tuple[int, int]]:
    """Return the pairs of groups that some subexpression reads without a third group."""
    here = sorted({groups[name.name] for name in names_in(node)})
    if len(here) == 2:
        return {(here[0], here[1])}
    inner = children(node) if len(here) > 2 else ()
    return set[tuple[int, int]]().union(*(_meeting(child, groups) for child in inner))


def _check_pairs(pairs: Pairs, trends: Trends) -> Pairs:
    if len(pairs) <= MOST_PAIRS:
        return pairs
    either = sorted(format_node(term) for term, trend in trends.items() if trend is Trend.EITHER)
    why = f"; {either[0]!r} may go either way with an objective or a limit" if either else ""
    raise StudyError(
        f"{len(pairs.left):,} x {len(pairs.right):,} combinations are left of "
        f"{_names(pairs.left)} with {_names(pairs.right)} after dominance pruning, "
        f"more than {MOST_PAIRS:,}{why}",
        hint="fewer objectives, coarser steps, or optimizer nsga2",
    )


def _names(piece: Piece) -> str:
    return " and ".join(sorted(piece.asked.names)[:2]) or "what nothing reads"
