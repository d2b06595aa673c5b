"""Construction of a space from a table file whose rows are the legal designs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from dse.core.expressions.expression import Expression
from dse.core.expressions.items import literal
from dse.core.expressions.syntax import Listed, Member, Name
from dse.core.parameter import Choice, Ordinal, Parameter
from dse.core.values import Value
from dse.errors import SpecError
from dse.schema.space.tables.cells import CellColumn, Grid, columns_of
from dse.schema.space.tables.combination_tables import digest_of

MAX_ROWS = 2_000_000

_FEW = 8
"""Maximum number of values of one column that a condition lists in its text."""

_Row = tuple[Value | None, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSpace:
    """Space whose legal designs are the rows of a table.

    ``parameters`` is keyed by column name. ``conditions`` maps the full names of parameters to
    their activity conditions; ``rule`` is the constraint to the rows.
    """

    parameters: dict[str, Parameter]
    conditions: dict[str, Expression]
    rule: Expression


def table_space(grid: Grid, full: Callable[[str], str] = str) -> TableSpace:
    """Build the space whose legal designs are the distinct rows of the table.

    A column of numbers becomes an ordinal parameter, one of texts or booleans a choice. A blank
    cell means that the parameter is inactive in that row; the values in the columns without blanks
    must determine in which rows.

    Args:
        grid: the unparsed table.
        full: maps a column name to the parameter's full name.

    Raises:
        SpecError: the table is too long, a column cannot be parsed, or two rows that agree in
            all columns without blanks differ in which cells are blank.
    """
    if len(grid.columns[0]) > MAX_ROWS:
        raise SpecError(f"the table has more than {MAX_ROWS:,} rows", where=grid.where)
    columns = [_uniform(column) for column in columns_of(grid, mixed=None)]
    rows = list(zip(*(column.values for column in columns), strict=True))
    distinct = list(dict.fromkeys(rows))
    names = [full(column.name) for column in columns]
    always = [place for place, one in enumerate(columns) if None not in one.values]
    conditions = {
        names[place]: _presence(place, always, names, rows, grid)
        for place in range(len(columns))
        if place not in always
    }
    listed = Listed(tuple(Name(name) for name in names), tuple(distinct))
    text = f"allow [{', '.join(names)}] in {len(distinct)} rows (table {digest_of(distinct)})"
    return TableSpace(
        parameters={
            column.name: _parameter(column, name, grid)
            for name, column in zip(names, columns, strict=True)
        },
        conditions=conditions,
        rule=Expression(text, listed),
    )


def _uniform(column: CellColumn) -> CellColumn:
    """Return the column with all numbers as floats if any of them is a float."""
    if not column.numeric or not any(isinstance(value, float) for value in column.distinct):
        return column
    return replace(
        column,
        values=tuple(None if value is None else float(value) for value in column.values),
        distinct=tuple(dict.fromkeys(float(value) for value in column.distinct)),
    )


def _parameter(column: CellColumn, name: str, grid: Grid) -> Parameter:
    if not column.distinct:
        raise SpecError(f"the column {column.name!r} is empty", where=grid.where)
    if column.numeric:
        numbers = sorted(value for value in column.distinct if not isinstance(value, str))
        return Ordinal(name=name, values=tuple(numbers), unit=column.unit)
    return Choice(name=name, values=column.distinct, unit=column.unit)


def _presence(
    place: int, always: Sequence[int], names: Sequence[str], rows: Sequence[_Row], grid: Grid
) -> Expression:
    """Return the activity condition of a column with blanks: where its cells have a value.

    The condition reads the columns without blanks (``always``); those that it does not need are
    dropped greedily. ``place`` is the column's index.

    Raises:
        SpecError: the columns without blanks do not determine which cells are blank.
    """
    clash = _clash(place, always, rows)
    if clash is not None:
        one, other = clash
        raise SpecError(
            f"no column determines when {names[place]!r} is blank: two rows agree in every column "
            "without blanks, but only one has a value",
            where=grid.place(one, names[place]),
            hint=f"the other is at {grid.place(other, names[place])}",
        )
    telling = list(always)
    for candidate in always:
        fewer = [column for column in telling if column != candidate]
        if _clash(place, fewer, rows) is None:
            telling = fewer
    present = dict.fromkeys(
        tuple(row[column] for column in telling) for row in rows if row[place] is not None
    )
    shown_columns = [names[column] for column in telling]
    if len(shown_columns) == 1 and len(present) <= _FEW:
        values = [value for (value,) in present if value is not None]
        shown = ", ".join(repr(value) for value in values)
        member = Member(Name(shown_columns[0]), tuple(literal(value) for value in values))
        return Expression(f"{shown_columns[0]} in [{shown}]", member)
    listed = Listed(tuple(Name(name) for name in shown_columns), tuple(present))
    text = f"[{', '.join(shown_columns)}] in {len(present)} rows (table {digest_of(present)})"
    return Expression(text, listed)


def _clash(place: int, columns: Sequence[int], rows: Sequence[_Row]) -> tuple[int, int] | None:
    """Return two rows equal in these columns of which only one has a value at ``place``.

    The result is a pair of row indices, or ``None`` if there is no such pair. ``place`` is a
    column's index.
    """
    first: dict[_Row, int] = {}
    for number, row in enumerate(rows):
        key = tuple(row[column] for column in columns)
        known = first.setdefault(key, number)
        if (rows[known][place] is None) != (row[place] is None):
            return known, number
    return None
