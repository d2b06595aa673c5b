"""Parsing of table cells, with or without units, into columns of one type and one unit."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeGuard

from dse.core.values import Value
from dse.errors import SpecError
from dse.schema.space.parameters.domains import Amount, Number, amount, literal
from dse.schema.space.rules.exactness import check_exact_values
from dse.units import units

_Content = Amount | bool | str
"""Parsed content of a cell that is not blank."""

_HEADER = re.compile(r"^\s*(.*?)(?:\s+\[([^\[\]]*)\])?\s*$")
"""Column header: ``memory [GiB]`` has a unit; ``bits[0]``, without a space, is a list member."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """Table of unparsed cells, column by column, with one header per column.

    ``place`` returns the file location of a cell from its row index and its column header;
    ``where`` is the location of the table.
    """

    headers: tuple[str, ...]
    columns: tuple[Sequence[Any], ...]
    place: Callable[[int, str], str]
    where: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CellColumn:
    """Parsed values of a column in the coherent unit ``unit``; ``None`` for a blank cell.

    ``distinct`` are the different values without ``None``, in order of first appearance.
    """

    name: str
    values: tuple[Value | None, ...]
    distinct: tuple[Value, ...]
    unit: str

    @property
    def numeric(self) -> bool:
        """Whether every cell that is not blank is a number."""
        return all(is_number(value) for value in self.distinct)


def columns_of(grid: Grid, *, mixed: frozenset[str] | None = frozenset()) -> list[CellColumn]:
    """Parse every column of the table.

    Args:
        grid: the unparsed table.
        mixed: headers of columns that may hold both texts and numbers; ``None`` for all.

    Raises:
        SpecError: two columns have the same name, or a column mixes types or units.
    """
    found: list[CellColumn] = []
    for header, cells in zip(grid.headers, grid.columns, strict=True):
        name, unit = split_header(header)
        if not name:
            raise SpecError("a column has no name", where=grid.where)
        if any(one.name == name for one in found):
            raise SpecError(f"there are two columns {name!r}", where=grid.where)
        if unit:
            try:
                units.unit(unit)
            except SpecError as error:
                raise error.at(grid.where) from error
        free = mixed is None or header in mixed
        found.append(_column(name, unit, cells, mixed=free, place=grid.place))
    return found


def split_header(header: str) -> tuple[str, str]:
    """Return the name and the unit of a header such as ``memory [GiB]``."""
    found = _HEADER.match(header)
    return (found.group(1), (found.group(2) or "").strip()) if found else (header, "")


def is_number(value: object) -> TypeGuard[Number]:
    """Return whether the value is a number; a boolean is not."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def cell(value: Any, unit: str = "") -> _Content:
    """Parse the content of a cell as an amount, a boolean or a text.

    Args:
        value: the cell; a text is stripped and may hold a number, a boolean or a quantity.
        unit: the unit of a number without one.

    Raises:
        SpecError: the number is not finite or not exact, or the cell is not a scalar.
    """
    parsed = value
    if isinstance(value, str):
        words = value.strip()
        if words.lower() in ("true", "false"):
            return words.lower() == "true"
        parsed = literal(words)
        if isinstance(parsed, str):
            return _quantity(words, unit)
    if isinstance(parsed, bool):
        return parsed
    if not isinstance(parsed, int | float):
        raise SpecError(f"{str(parsed)[:60]!r} is neither a number nor a text")
    check_exact_values((parsed,))
    return amount(parsed, unit)


def _quantity(words: str, unit: str) -> Amount | str:
    """Return the number in a text such as ``80 GiB`` with its unit; else the text itself."""
    found = units.quantity(words)
    if found is None:
        return words
    try:
        units.unit(found[1])
    except SpecError:
        return words
    return amount(words, unit)


def _column(
    name: str,
    unit: str,
    cells: Sequence[Any],
    *,
    mixed: bool,
    place: Callable[[int, str], str],
) -> CellColumn:
    """Parse the cells of one column; each distinct cell is parsed once."""
    keys = cells if _of_one_type(cells) else [(type(cell), cell) for cell in cells]
    rows: dict[Any, int] = {}
    for row, key in enumerate(keys):
        rows.setdefault(key, row)
    read: dict[Any, _Content | None] = {}
    first: dict[str, int] = {}
    for key, row in rows.items():
        try:
            read[key] = parsed = None if blank(cells[row]) else cell(cells[row], unit)
        except SpecError as error:
            raise error.at(place(row, name)) from error
        if parsed is not None:
            first.setdefault(_kind(parsed), row)
        if len(first) > 1 and not (mixed and _go_together(first)):
            raise _build_mixed_error(name, first, cells, place)
    units_ = {parsed.unit for parsed in read.values() if isinstance(parsed, Amount)}
    plain = {key: None if parsed is None else _plain(parsed) for key, parsed in read.items()}
    return CellColumn(
        name=name,
        values=tuple(map(plain.__getitem__, keys)),
        distinct=tuple(dict.fromkeys(value for value in plain.values() if value is not None)),
        unit=next(iter(units_), ""),
    )


def _of_one_type(cells: Sequence[Any]) -> bool:
    """Return whether all cells that are not blank have the same type.

    Only then do equal cells mean the same: 1 and ``true`` are equal in Python, but of two types.
    """
    return len(set(map(type, cells)) - {type(None)}) < 2


def _kind(content: _Content) -> str:
    if isinstance(content, Amount):
        return f"in {content.unit}" if content.unit else "a bare number"
    return "a word" if isinstance(content, str) else "true or false"


def _go_together(kinds: Iterable[str]) -> bool:
    """Return whether a column may mix cells of these types: strings and at most one other type."""
    return len(set(kinds) - {"a word"}) < 2


def _plain(content: _Content) -> Value:
    return content.value if isinstance(content, Amount) else content


def _build_mixed_error(
    name: str, first: dict[str, int], cells: Sequence[Any], place: Callable[[int, str], str]
) -> SpecError:
    (one, row), (other, later) = list(first.items())[:2]
    return SpecError(
        f"the column {name!r} is mixed: {cells[later]!r} is {other}, {cells[row]!r} is {one}",
        where=place(later, name),
        hint=f"the other is at {place(row, name)}; give a column one kind of value and one unit",
    )


def blank(value: Any) -> bool:
    """Return whether a cell is empty: ``None``, NaN, or only white space."""
    if value is None or (isinstance(value, str) and not value.strip()):
        return True
    return isinstance(value, float) and math.isnan(value)
