"""Pruning of value combinations that are dominated whatever the other groups choose.

A group is a set of parameters that no rule or metric couples to the others. In this module, a term
is a subexpression of an objective or limit that reads parameters or metrics of one group only, and
a row is a combination of that group's values. The proof is in ``docs/decisions/0011-decompose.md``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from dse.core.batch import Batch, Column
from dse.core.expressions.expression import Expression
from dse.core.expressions.printer import format_node
from dse.core.expressions.syntax import Name, Node, Unary, names_in
from dse.core.problem import Problem
from dse.core.values import Floats, Mask
from dse.errors import StudyError
from dse.optimizers.exact.group_rows import Pairs, Piece
from dse.optimizers.exact.monotonicity import (
    Trend,
    Trends,
    merge_trends,
    monotone_range,
    pair_folds,
    single_group_terms,
)
from dse.optimizers.exact.running_front import RunningFront, found_in

Groups = Mapping[str, int]
"""Index of the piece that each name belongs to."""

Ranges = Mapping[Node, tuple[float, float]]

_ANYTHING = (-math.inf, math.inf)


def minimized_formulas(problem: Problem) -> list[Node]:
    """Return the problem as formulas to minimise: objectives and limit slacks, signs included."""
    objectives = [
        (pair_folds(one.expression), one.goal == "maximize") for one in problem.objectives
    ]
    limits = [(pair_folds(one.slack), True) for one in problem.limits]
    return [Unary("-", node) if negated else node for node, negated in objectives + limits]


def groups_in(pieces: Sequence[Piece]) -> Groups:
    """Return, for each name in the formulas, the index of its group of independent parameters.

    Each :class:`Piece` holds the value combinations of one group.
    """
    return {name: place for place, piece in enumerate(pieces) for name in piece.asked.names}


def ranges_in(formulas: Sequence[Node], pieces: Sequence[Piece]) -> Ranges:
    """Return the range of each largest subexpression that reads one parameter group only."""
    groups = groups_in(pieces)
    terms = {term for node in formulas for term in single_group_terms(node, groups)}
    return {term: _range(_values(term, pieces[_group_index(term, groups)].asked)) for term in terms}


def known_everywhere(term: Node, pieces: Sequence[Piece], groups: Groups) -> bool:
    """Return whether a subexpression is finite for all values of its parameters."""
    column = _values(term, pieces[_group_index(term, groups)].asked)
    if column.values.dtype == object:
        return column.absent is None or not column.absent.any()
    values, known = _numbers(column)
    return bool((known & np.isfinite(values)).all())


def trends_of(formulas: Sequence[Node], groups: Groups, known: Ranges) -> Trends:
    """Return whether formulas rise or fall with their subexpressions over one parameter group.

    These are the largest subexpressions that read a single parameter group.

    Args:
        formulas: formulas to minimise.
        groups: the index of the group that provides each name.
        known: the value ranges of these subexpressions, or of subexpressions of them.
    """
    terms = {term for node in formulas for term in single_group_terms(node, groups)}
    inner = {term: monotone_range(term, known) for term in terms}
    ranges = {term: (one.low, one.high) for term, one in inner.items()}
    return merge_trends(*(monotone_range(node, ranges).trends for node in formulas))


def prune_rows(rows: Piece | Pairs, trends: Trends) -> Piece:
    """Return the non-dominated value combinations of a group of parameters.

    A combination dominates another if each of the group's subexpressions moves all formulas down,
    by the given trends. Of combinations with equal subexpressions the first is kept.

    Raises:
        StudyError: the values of a subexpression cannot be compared.
    """
    found: RunningFront | None = None
    for piece in rows.stream():
        columns, possible = _columns(piece.asked, trends)
        found = found or RunningFront.nothing(columns.shape[1])
        none = np.zeros(len(piece))
        new = found_in(columns, none, possible, first=found.total, beaters=found.losses)
        found = found.joined(new)
    return rows.take(found.places if found else np.zeros(0, dtype=np.int64))


def _group_index(term: Node, groups: Groups) -> int:
    return groups[names_in(term)[0].name]


def _columns(asked: Batch, trends: Trends) -> tuple[Floats, Mask]:
    """Return a group's subexpressions as columns to minimise, (n, c), and a mask, (n,).

    The n rows are the group's value combinations. If the formulas neither only rise nor only fall
    with a subexpression, a dominating combination must have an equal value of it; it then gives two
    columns of opposite sign. If the formulas only rise or only fall with it, a combination in which
    it has no value has no objective value either: the mask is false there.
    """
    columns, possible = list[Floats](), np.ones(len(asked), dtype=bool)
    for term, trend in trends.items():
        if names_in(term)[0].name not in asked:
            continue
        column = _values(term, asked)
        if trend is Trend.EITHER:
            same = _encode_column(term, column)
            columns += [same, -same]
        else:
            values, known = _numbers(column)
            possible &= known
            columns.append(values if trend is Trend.RISES else -values)
    return np.column_stack(columns or [np.zeros(len(asked))]), possible


def _values(term: Node, asked: Batch) -> Column:
    if isinstance(term, Name):
        return asked.columns[term.name]
    return Expression("", term).values(asked.columns, len(asked))


def _numbers(column: Column) -> tuple[Floats, Mask]:
    """Return the values as floats, and a mask of those that are present and not NaN."""
    values = column.values.astype(np.float64)
    known: Mask = np.asarray(~np.isnan(values))
    return values, known if column.absent is None else known & ~column.absent


def _range(column: Column) -> tuple[float, float]:
    if column.values.dtype == object:
        return _ANYTHING
    values, known = _numbers(column)
    return (float(values[known].min()), float(values[known].max())) if known.any() else _ANYTHING


def _encode_column(term: Node, column: Column) -> Floats:
    """Encode a column as numbers, equal where its values are; absent values are equal too.

    Raises StudyError where a value without a code is not a finite number.
    """
    if column.codes is not None:
        return column.codes.astype(np.float64)
    absent = np.zeros(len(column.values), dtype=bool) if column.absent is None else column.absent
    try:
        values = np.where(absent, 0.0, column.values).astype(np.float64)
    except ValueError:  # text values
        values = np.full(len(absent), np.nan)
    if not np.isfinite(values).all():
        raise StudyError(
            f"{format_node(term)!r} may go either way with an objective or a limit, "
            "and is not always a finite number",
            hint="use optimizer exhaustive or nsga2",
        )
    return np.where(absent, -np.inf, values)
