"""Progress of a task: a bar, the count, the elapsed time and the estimated remaining time."""

from __future__ import annotations

from collections.abc import Callable

from rich.console import Console, ConsoleOptions, RenderResult
from rich.progress import Progress
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from dse.report.words import seconds_text
from dse.services.progress.text_scatter import BRIGHT, FAINT

_BAR = 28
"""Width of a bar that is followed by text; in a narrow terminal the text is below the bar."""

_ROOMY = 72
_MEMORY_S = 3600.0
"""Length of the period over which the speed is averaged, in seconds."""


class QuantityProgressBar:
    """Progress bar of a countable amount, with elapsed and estimated remaining time.

    ``total`` is ``None`` if the total amount is unknown.
    """

    def __init__(
        self, word: str, total: float | None, done: float, *, clock: Callable[[], float]
    ) -> None:
        self.word = word
        self.total = total
        self.done = done
        self._progress = Progress(
            get_time=clock, speed_estimate_period=_MEMORY_S, auto_refresh=False
        )
        self._progress.add_task("", total=total, completed=int(done))
        (self._task,) = self._progress.tasks

    def at(self, done: float, total: float | None = None) -> None:
        """Set the completed amount and, if given, the total, and redraw the bar."""
        self.total = self.total if total is None else total
        self.done = done
        if done != self._task.completed:
            self._progress.update(self._task.id, completed=done, total=self.total)

    @property
    def count(self) -> str:
        """Completed amount and total, such as ``41/60 measurements``."""
        end = "" if self.total is None else f"/{self.total:g}"
        return f"{int(self.done)}{end} {self.word}"

    @property
    def times(self) -> str:
        """Elapsed and estimated remaining time as text, such as ``1 min 12 s, eta 35 s``."""
        spent, left = self._task.elapsed or 0.0, self._task.time_remaining
        words = [seconds_text(int(spent))]
        if left is not None and not self._task.finished:
            words.append(f"eta {seconds_text(round(left))}")
        return ", ".join(words)

    @property
    def line(self) -> str:
        """Completed amount, elapsed and remaining time as one line of text."""
        return f"{self.count}, {self.times}"

    def __rich_console__(self, _: Console, options: ConsoleOptions) -> RenderResult:
        roomy = options.max_width >= _ROOMY
        bar = ProgressBar(
            total=self.total,
            completed=self.done,
            pulse=self.total is None,
            width=_BAR if roomy else options.max_width,
            complete_style=BRIGHT,
            finished_style=BRIGHT,
            pulse_style=BRIGHT,
            animation_time=self._task.elapsed,
        )
        if not roomy:
            rows = Table.grid()
            rows.add_row(bar)
            rows.add_row(Text(self.count))
            rows.add_row(Text(self.times))
            yield rows
            return
        row = Table.grid(padding=(0, 2, 0, 0))
        row.add_row(bar, Text(self.count), Text(self.times, style=FAINT))
        yield row
