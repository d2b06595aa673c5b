"""A bar on the error stream for a step that may be long."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from dse.report.console import SafeConsole


@contextmanager
def replaying(*, quiet: bool) -> Iterator[Callable[[int, int], None]]:
    """A function that is told how many asks of how many are replayed; it goes when all are."""
    console = SafeConsole(stderr=True)
    bar = Progress(
        TextColumn("replaying"),
        BarColumn(bar_width=28),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("eta"),
        TimeRemainingColumn(),
        console=console,
        disable=quiet or not console.is_terminal,
        transient=True,
        refresh_per_second=4,
    )
    task = bar.add_task("asks", total=None)
    with bar:
        yield lambda done, total: bar.update(task, completed=done, total=total)
