"""Progress bars on the error stream for steps that may take long."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from dse.report.text.console import SafeConsole


def replaying(*, quiet: bool) -> AbstractContextManager[Callable[[int, int], None]]:
    """Show a progress bar for a replay; yield a function that updates it.

    The function takes the numbers of optimizer calls replayed so far and in total. The bar
    disappears at the end.
    """
    return progress_bar("replaying", quiet=quiet)


@contextmanager
def progress_bar(title: str, *, quiet: bool) -> Iterator[Callable[[int, int], None]]:
    """Show a bar with the time left while the block lasts; yield its update function.

    Args:
        title: the name of the step.
        quiet: show nothing.
    """
    console = SafeConsole(stderr=True)
    bar = Progress(
        TextColumn(title),
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
    task = bar.add_task(title, total=None)
    with bar:
        yield lambda done, total: bar.update(task, completed=done, total=total)
