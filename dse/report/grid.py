"""Rows of text fitted to a terminal: one table if it is wide enough, else two."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.measure import Measurement
from rich.table import Table

_LONG_HEADING = 12
_UNBOUNDED = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Lane:
    """One column of a table; ``cells`` are as they are, without markup."""

    heading: str
    cells: Sequence[str]
    right: bool = False


def table_of(lanes: Iterable[Lane]) -> Table:
    """The lanes as a table; a cell that is too long goes on in the next line."""
    held = list(lanes)
    table = Table(box=SIMPLE_HEAD, header_style="bold", pad_edge=False)
    for lane in held:
        table.add_column(
            escape(_heading(lane.heading)),
            justify="right" if lane.right else "left",
            overflow="fold",
        )
    for row in zip(*(lane.cells for lane in held), strict=True):
        table.add_row(*map(escape, row))
    return table


def print_fitted(
    console: Console,
    key: Lane,
    results: Sequence[Lane],
    settings: Sequence[Lane],
    *,
    more: Sequence[Lane] = (),
) -> None:
    """Print ``results``, what ``more`` there is and ``settings`` by their ``key``.

    Where one table of all is wider than the terminal, the settings follow in a table of their
    own, as ``name=value`` pairs; where even results with more do not fit, more is left out.
    """
    if _fits(console, [key, *results, *more, *settings]):
        console.print(table_of([key, *results, *more, *settings]))
        return
    whole = _fits(console, [key, *results, *more])
    console.print(table_of([key, *results, *more] if whole else [key, *results]))
    if not whole and more:
        words = f"{len(more)} more metrics do not fit here: --format csv or json has them"
        console.print(words, style="dim")
    if settings:
        pairs = [_pairs(settings, row) for row in range(len(key.cells))]
        console.print(table_of([key, Lane(heading="design", cells=pairs)]))


def print_split(console: Console, key: Lane, lanes: Sequence[Lane]) -> None:
    """Print the lanes in as few tables as the terminal's width allows, each with the ``key``."""
    left = list(lanes)
    while left:
        many = len(left)
        while many > 1 and not _fits(console, [key, *left[:many]]):
            many -= 1
        console.print(table_of([key, *left[:many]]))
        left = left[many:]


def _fits(console: Console, lanes: Sequence[Lane]) -> bool:
    roomy = console.options.update(max_width=_UNBOUNDED, width=_UNBOUNDED)
    return Measurement.get(console, roomy, table_of(lanes)).maximum <= console.width


def _pairs(settings: Sequence[Lane], row: int) -> str:
    held = ((lane.heading, lane.cells[row]) for lane in settings)
    return ", ".join(f"{name}={words}" for name, words in held if words)


def _heading(words: str) -> str:
    """A long dotted name over several lines."""
    return words.replace(".", ".\n") if len(words) > _LONG_HEADING else words
