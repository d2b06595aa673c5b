"""Parser of ``tables:`` in a space file: allowed or forbidden combinations of values."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from dse.core.expressions.expression import Expression
from dse.core.expressions.syntax import Listed, Name
from dse.core.parameter import Choice, Parameter, Real
from dse.core.values import Value
from dse.errors import SpecError, nearest
from dse.schema.models import Scalar
from dse.schema.space.file import Stated, TableSpec
from dse.schema.space.parameters.domains import Amount
from dse.schema.space.parameters.narrowing import own_value
from dse.schema.space.scope import Scope
from dse.schema.space.tables.cells import blank, cell, split_header
from dse.schema.space.tables.grids import grid_of
from dse.schema.yaml.files import Files, resolve_path
from dse.schema.yaml.validation import ErrorCollector, HiddenError

MAX_ROWS = 1_000_000

GONE = "\0"
"""Marker for a value that was fixed, narrowed or replaced away; no design matches its row."""


@dataclass(frozen=True, slots=True)
class _Rows:
    """Unparsed rows of a table, the location of each row, and the unit of each column."""

    cells: Sequence[Sequence[Scalar | None]]
    places: Sequence[str]
    units: Sequence[str]


def rule_of(
    stated: Stated[TableSpec], scope: Scope, files: Files, mistakes: ErrorCollector
) -> Expression | None:
    """Return the constraint that a table of allowed or forbidden combinations states.

    If a row is invalid, every error is added to ``mistakes`` and the result is ``None``.

    Raises:
        SpecError: a column is not a parameter with a finite domain, a row has the wrong length,
            the table is too long, or its file cannot be read.
    """
    spec = stated.value
    names = spec.allow or spec.forbid or []
    key = "allow" if spec.allow else "forbid"
    columns = _columns(names, scope, stated, key)
    rows = (
        _read_stated_rows(stated, names)
        if spec.file is None
        else _read_file_rows(stated, names, files)
    )
    if len(rows.cells) > MAX_ROWS:
        raise SpecError(f"the table has more than {MAX_ROWS:,} rows", where=stated.where)
    found, fine = dict[tuple[Value | None, ...], None](), True
    readers = [
        _CellReader(parameter, scope, unit, written=spec.file is None)
        for parameter, unit in zip(columns, rows.units, strict=True)
    ]
    for cells, place in zip(rows.cells, rows.places, strict=True):
        try:
            row = _row(cells, readers)
            if GONE not in row:
                found[row] = None
        except SpecError as error:
            mistakes.add(error, place)
            fine = False
    if not fine:
        return None
    listed = Listed(
        tuple(Name(parameter.name) for parameter in columns),
        tuple(found),
        negated=spec.forbid is not None,
    )
    columns_text = ", ".join(parameter.name for parameter in columns)
    text = f"{key} [{columns_text}] in {len(found)} rows (table {digest_of(found)})"
    return Expression(text, listed)


def _columns(
    names: Iterable[str], scope: Scope, stated: Stated[TableSpec], key: str
) -> list[Parameter]:
    found: list[Parameter] = []
    for place, name in enumerate(names):
        full, where = scope.full(name), stated.at(key, place)
        parameter = scope.whole.parameters.get(full)
        if parameter is None and scope.whole.hidden(full):
            raise HiddenError(full)
        if parameter is None:
            hint = nearest(full, scope.whole.parameters)
            raise SpecError(f"there is no parameter {name!r}", where=where, hint=hint)
        if isinstance(parameter, Real):
            hint = "give it steps: an ordinal such as 'range(0 .. 1, 0.1)'"
            raise SpecError(f"{name} is real, and a table lists values", where=where, hint=hint)
        if parameter in found:
            raise SpecError(f"{name} appears twice", where=where)
        found.append(parameter)
    return found


def _read_stated_rows(stated: Stated[TableSpec], names: Sequence[str]) -> _Rows:
    rows = stated.value.rows or []
    for place, row in enumerate(rows):
        if len(row) != len(names):
            raise SpecError(
                f"this row has {len(row)} values for {len(names)} parameters",
                where=stated.at("rows", place),
                hint=f"in the order {', '.join(names)}",
            )
    return _Rows(rows, [stated.at("rows", place) for place in range(len(rows))], [""] * len(names))


def _read_file_rows(stated: Stated[TableSpec], names: Sequence[str], files: Files) -> _Rows:
    assert stated.value.file is not None
    where = stated.at("file")
    grid = grid_of(resolve_path(stated.value.file, stated.source.path), files, named_at=where)
    headers = {split_header(header)[0]: place for place, header in enumerate(grid.headers)}
    missing = next((name for name in names if name not in headers), None)
    if missing is not None:
        hint = nearest(missing, headers)
        raise SpecError(f"the table has no column {missing!r}", where=grid.where, hint=hint)
    chosen = [headers[name] for name in names]
    cells = list(zip(*(grid.columns[place] for place in chosen), strict=True))
    places = [grid.place(row, names[0]) for row in range(len(cells))]
    return _Rows(cells, places, [split_header(grid.headers[place])[1] for place in chosen])


class _CellReader:
    """Converter of the cells in one column to values of the column's parameter, with a cache.

    A blank text usually means that the parameter is inactive. It is a value if the parameter's
    domain contains that text and either the row is ``written`` in the YAML file, where ``null``
    means inactive, or the parameter is always active.
    """

    def __init__(self, parameter: Parameter, scope: Scope, unit: str, *, written: bool) -> None:
        self.parameter = parameter
        self.scope = scope
        self.unit = unit
        self.sometimes = parameter.name in scope.whole.conditions
        self._keeps_blank = written or not self.sometimes
        self._known: dict[tuple[type, Scalar], Value] = {}

    def value(self, content: Scalar | None) -> Value | None:
        """Convert a cell to the parameter's value; ``None`` (inactive) if the cell is blank."""
        if self._keeps_blank and isinstance(content, str) and content in self.parameter:
            return content
        if content is None or blank(content):
            if not self.sometimes:
                raise SpecError(
                    f"{self.parameter.name} is blank here, but it is never absent",
                    hint="a blank cell stands for a parameter whose 'when' does not hold",
                )
            return None
        key = (type(content), content)
        if key not in self._known:
            self._known[key] = self._match_value(self._plain(content))
        return self._known[key]

    def _match_value(self, content: Scalar) -> Value:
        """Return the parameter's value that equals a parsed cell.

        It is ``GONE`` if only an earlier definition, before ``fix``, ``narrow`` or replacement, had
        it.
        """
        try:
            return own_value(self.parameter, content, self.scope)
        except SpecError:
            for before in self.scope.whole.before.get(self.parameter.name, ()):
                with suppress(SpecError):
                    own_value(before, content, self.scope)
                    return GONE
            raise

    def _plain(self, content: Scalar) -> Scalar:
        """Parse a cell as a number in coherent units (65536 for ``64 KiB``) or as a string."""
        if not isinstance(content, str) or content in self.parameter:
            return content
        words = isinstance(self.parameter, Choice)
        parsed = cell(content if words else self.scope.word(content), self.unit)
        if not isinstance(parsed, Amount):
            return parsed
        if parsed.unit and parsed.unit != self.parameter.unit:
            raise SpecError(
                f"{content!r} is in {parsed.unit}, but {self.parameter.name} is in "
                f"{self.parameter.unit or 'no unit'}"
            )
        return parsed.value


def _row(
    cells: Sequence[Scalar | None], readers: Sequence[_CellReader]
) -> tuple[Value | None, ...]:
    return tuple(reader.value(cell) for cell, reader in zip(cells, readers, strict=True))


def digest_of(rows: Iterable[tuple[Value | None, ...]]) -> str:
    """Return a hash of the table's rows, six hex digits, to identify it in messages and records."""
    digest = hashlib.sha256()
    for row in rows:
        digest.update(repr(row).encode())
    return digest.hexdigest()[:6]
