"""Tables fitted to the terminal width: one or several tables, or a block of lines per row."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Console
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from dse.report.text.console import SafeConsole
from dse.system.terminal_text import visible

_LONG_HEADING = 12
_GAP = 3
"""Number of characters between two columns."""

_LONG_WORD = 32
_HANG = 4
_UNBOUNDED = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Lane:
    """Column of a terminal table: heading and cells, with invisible characters already marked."""

    heading: str
    cells: Sequence[str]
    right: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "heading", visible(self.heading))
        object.__setattr__(self, "cells", list(map(visible, self.cells)))


def results_console() -> Console:
    """Return the console for results: as wide as the terminal; unlimited in files and pipes."""
    console = SafeConsole()
    wide = console.is_terminal or "COLUMNS" in os.environ
    return console if wide else SafeConsole(width=_UNBOUNDED)


def table_of(lanes: Iterable[Lane], room: int = _UNBOUNDED) -> Table:
    """Return the columns as a table of at most ``room`` characters; long cells are wrapped.

    A word is broken only if it would not fit otherwise.
    """
    held = list(lanes)
    table = Table(box=SIMPLE_HEAD, header_style="bold", pad_edge=False)
    for lane, width in zip(held, _widths(held, room), strict=True):
        table.add_column(
            escape(_heading(lane.heading)),
            justify="right" if lane.right else "left",
            overflow="fold",
            width=width,
        )
    for row in zip(*(lane.cells for lane in held), strict=True):
        table.add_row(*map(escape, row))
    return table


def print_lines(lines: Iterable[str], console: Console | None = None) -> None:
    """Print lines; a long line is wrapped at spaces, and its continuation is indented."""
    console = console or results_console()
    for line in map(visible, lines):
        own = len(line) - len(line.lstrip())
        inside = " " * min(own + _HANG, console.width // 2)
        folded = textwrap.wrap(
            line, console.width, subsequent_indent=inside, break_on_hyphens=False
        )
        for part in folded or [""]:
            console.print(Text(part), soft_wrap=True)


def print_lanes(console: Console, lanes: Sequence[Lane]) -> None:
    """Print one table or, if it would have to break words, a block of lines for each row.

    The first column has the names of the rows, which become the blocks' headings.
    """
    if _total(map(_least, lanes)) <= console.width:
        console.print(table_of(lanes, console.width))
        return
    key, *others = lanes
    for row, name in enumerate(key.cells):
        title = f"{_flat(key.heading)} {name.strip()}" if key.right else name
        console.print(Text(title, style="bold", overflow="fold"))
        for lane in others:
            if lane.cells[row]:
                words = ", ".join(lane.cells[row].split("\n"))
                text = words if len(others) == 1 else f"{_flat(lane.heading)}: {words}"
                console.print(Padding(Text(text, overflow="fold"), (0, 0, 0, 2)))


def print_fitting_tables(
    console: Console,
    key: Lane,
    results: Sequence[Lane],
    settings: Sequence[Lane],
    *,
    more: Sequence[Lane] = (),
) -> None:
    """Print a table of results and settings, split or shortened to fit the terminal's width.

    ``key`` is the column that names the rows. If one table is too wide, the columns ``settings``
    follow in a table of their own, as ``name=value`` pairs; if even ``results`` and ``more`` do not
    fit, the columns ``more`` are left out.
    """
    if fits(console, [key, *results, *more, *settings]):
        console.print(table_of([key, *results, *more, *settings]))
        return
    whole = fits(console, [key, *results, *more])
    print_split(console, key, [*results, *more] if whole else results)
    if not whole and more:
        console.print(_left_out(more), style="dim")
    if settings:
        pairs = [_pairs(settings, row) for row in range(len(key.cells))]
        print_lanes(console, [key, Lane(heading="design", cells=pairs)])


def print_split(console: Console, key: Lane, lanes: Sequence[Lane]) -> None:
    """Print the columns in as few tables as fit the terminal; each begins with ``key``."""
    left = list(lanes)
    while left:
        many = len(left)
        while many > 1 and not fits(console, [key, *left[:many]]):
            many -= 1
        console.print(table_of([key, *left[:many]], console.width))
        left = left[many:]


def fits(console: Console, lanes: Sequence[Lane]) -> bool:
    """Return whether one table of these columns fits the terminal without wrapping a cell."""
    return _total(map(_most, lanes)) <= console.width


def _widths(lanes: Sequence[Lane], room: int) -> list[int]:
    """Return the width of each column: its longest line, or less to fit into ``room``.

    Columns are narrowed down to their longest words, which are broken only if even this does not
    fit.
    """
    most, least = list(map(_most, lanes)), list(map(_least, lanes))
    if _total(most) <= room:
        return most
    if _total(least) > room:  # the longest are broken
        least = [1] * len(lanes)
    for level in range(max(most), 0, -1):
        widths = [min(top, max(low, level)) for top, low in zip(most, least, strict=True)]
        if _total(widths) <= room:
            return widths
    return least


def _total(widths: Iterable[int]) -> int:
    return sum(width + _GAP for width in widths) - 1


def _most(lane: Lane) -> int:
    """Return the width of the longest line in a column, heading included."""
    return max(cell_len(line) for text in _texts(lane) for line in text.split("\n"))


def _least(lane: Lane) -> int:
    """Return a column's minimum width: its longest word, or a limit beyond which words break."""
    longest = max((cell_len(word) for text in _texts(lane) for word in text.split()), default=1)
    return min(longest, _LONG_WORD)


def _texts(lane: Lane) -> list[str]:
    return [_heading(lane.heading), *lane.cells]


def _pairs(settings: Sequence[Lane], row: int) -> str:
    held = ((lane.heading, lane.cells[row]) for lane in settings)
    return ", ".join(f"{name}={words}" for name, words in held if words)


def _left_out(more: Sequence[Lane]) -> str:
    names = ", ".join(_flat(lane.heading) for lane in more)
    are = "metrics do" if len(more) > 1 else "metric does"
    return f"{len(more)} more {are} not fit here ({names}): --format csv or json has all"


def _heading(words: str) -> str:
    """Break a long dotted heading (``evaluator.metric``) into several lines."""
    lines = words.split("\n")
    return "\n".join(x.replace(".", ".\n") if len(x) > _LONG_HEADING else x for x in lines)


def _flat(heading: str) -> str:
    return " ".join(heading.split("\n"))
