"""Notebook view of a space: its parameters, constraints, and number of legal designs."""

from __future__ import annotations

from dse.api.design_space import UNNAMED
from dse.api.notebook.parts import TableColumn, framed, listed, note, paragraphs, table
from dse.core.space import DesignSpace
from dse.report.text.space_words import Entry, big, entries, format_count

MOST_ROWS = 40


def space_html(name: str, space: DesignSpace) -> str:
    """Return the HTML view of a space: a table of parameters, followed by the constraints."""
    known, count = entries(space), space.count()
    size = "too many legal designs to count" if count is None else _legal(count)
    more = len(known) - MOST_ROWS
    rules = [rule.text for rule in space.constraints]
    return framed(
        name if name != UNNAMED else "Space",
        table(_columns(space, known[:MOST_ROWS])),
        note(f"and {format_count(more, 'more parameter')}" if more > 0 else ""),
        paragraphs(["Rules"] if rules else []),
        listed(rules),
        beside=f"{format_count(len(known), 'parameter')}, {size}",
    )


def _legal(count: int) -> str:
    return f"{big(count)} legal design{'s' if count != 1 else ''}"


def _columns(space: DesignSpace, known: tuple[Entry, ...]) -> list[TableColumn]:
    columns = [
        TableColumn(heading="parameter", cells=[entry.name for entry in known]),
        TableColumn(heading="domain", cells=[entry.domain for entry in known]),
    ]
    units = [entry.members[0].unit if entry.members else "" for entry in known]
    if any(units):
        columns.append(TableColumn(heading="unit", cells=units))
    when = [_condition(space, entry) for entry in known]
    if any(when):
        columns.append(TableColumn(heading="active when", cells=when))
    return columns


def _condition(space: DesignSpace, entry: Entry) -> str:
    texts = [space.conditions[m.name].text for m in entry.members if m.name in space.conditions]
    return "; ".join(dict.fromkeys(texts))
