"""Terminal panel of a running study: progress bar, trial counts, and a small scatter plot."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Literal

from rich.box import ROUNDED
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.panel import Panel
from rich.text import Text

from dse.report.json.gap_json import gap_text
from dse.report.text.space_words import format_count
from dse.report.words import number_text, seconds_text, share_text
from dse.schema.study.budget import Budget
from dse.services.progress.picture import picture, restore_sign
from dse.services.progress.progress_bar import QuantityProgressBar
from dse.services.progress.text_scatter import FAINT
from dse.services.progress.watch import ProgressTracker
from dse.study.stopping_bounds import Bounds
from dse.study.study_engine import StudyEngine

LEAST_COLUMNS, LEAST_ROWS = 36, 18
"""A smaller terminal gets a line instead of a panel."""

_BORDERED = 60
_SHORTEST, _LONGEST = 4, 14
_OTHER_ROWS = 14
"""Terminal rows that the plot leaves for the rest of the panel and for earlier output."""


class StudyPanel:
    """Progress panel of one running study.

    ``above`` is the progress bar over several studies, if this study is one of a series.
    """

    def __init__(
        self,
        study: StudyEngine,
        budget: Budget,
        *,
        above: QuantityProgressBar | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        bounds = study.bounds(budget)
        self.name = study.name
        self._study = study
        self._above = above
        self._before = above.done if above else 0.0
        self._clock = clock
        self.watch = ProgressTracker(study.problem, study.finished, clock=clock)
        self.finished = self.watch.finished
        self._counted, most = _choose_bar_quantity(bounds)
        self._began_s = clock() - self.watch.cost_s  # seconds are counted as in the loop's budget
        self.way = QuantityProgressBar(self._counted, most, self._done, clock=clock)
        self.search: QuantityProgressBar | None = None

    def searched(self, done: int, total: int) -> None:
        """Show how many of all legal designs an exhaustive search has evaluated."""
        if self.search is None:
            self.search = QuantityProgressBar("designs searched", total, 0, clock=self._clock)
        self.search.at(done, total)

    def look(self, *, finally_: bool = False) -> None:
        """Process the trials that finished since the last call, and redraw the progress bars."""
        self.watch.catch_up(finally_=finally_)
        self.way.at(self._done)
        if self._above is not None and self.way.total:
            self._above.at(self._before + min(self.way.done / self.way.total, 1.0))

    @property
    def line(self) -> str:
        """Progress, trial counts, quality of the front and times as one line of text."""
        return ", ".join([self.way.count, *self.counts(), self.quality(), self.way.times])

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        if options.max_width < LEAST_COLUMNS or console.height < LEAST_ROWS:
            yield Text(self.line, no_wrap=True, overflow="ellipsis")
            return
        body = Group(*self._parts(options, max(console.height - _OTHER_ROWS, _SHORTEST)))
        if options.max_width < _BORDERED:
            yield body
            return
        yield Panel(
            body,
            title=Text(self.name, style="not dim bold"),
            title_align="left",
            box=ROUNDED,
            border_style=FAINT,
        )

    def _parts(self, options: ConsoleOptions, room: int) -> Iterator[RenderableType]:
        if self._above is not None:
            yield self._above
        yield self.way
        if self.search is not None:
            yield self.search
        yield Text(", ".join(self.counts()))
        yield Text(self.quality())
        yield Text()
        yield from picture(self.watch, min(room, _LONGEST), ascii_only=options.ascii_only)

    @property
    def _done(self) -> float:
        match self._counted:
            case "measurements":
                return self.watch.measured
            case "trials":
                return self.watch.ended
            case "seconds":
                return self._clock() - self._began_s

    def counts(self) -> list[str]:
        """Return the trial counts by outcome as short texts, such as ``3 failed``."""
        watch, problem = self.watch, self.watch.problem
        words = [] if self._counted == "trials" else [format_count(watch.ended, "trial")]
        if self._counted != "measurements" and problem.measured:
            words.append(f"{watch.measured} measured")
        others = {
            "failed": watch.failed,
            "infeasible": watch.infeasible,
            "outside limits": watch.outside,
        }
        words += [f"{count} {word}" for word, count in others.items() if count]
        if len(problem.objectives) > 1:
            words.append(f"{len(watch.front)} on the front")
        return words

    def quality(self) -> str:
        """Return the hypervolume in percent, and how long ago it last rose, as one string.

        With a single objective, return its best value, and how long ago it was found.
        """
        watch = self.watch
        if watch.hypervolume is None:
            return "hypervolume not known yet"
        rose = "" if watch.since_s is None else f" {_ago(watch.since_s)}"
        if len(watch.steps):
            (objective,) = watch.problem.objectives
            best = number_text(
                restore_sign(objective, watch.steps[-1, 1]),
                objective.unit,
                written=objective.written,
            )
            return f"best {best}" + (f", found{rose}" if rose else "") + self._gap_words()
        share = share_text(watch.hypervolume_share, estimated=watch.hypervolume_is_estimated)
        return f"hypervolume {share}" + (f", rose{rose}" if rose else "") + self._gap_words()

    def _gap_words(self) -> str:
        """Return the end of a line: the gap that the run last estimated; empty without a gap."""
        gap = self._study.latest_gap
        return "" if gap is None else f", gap {gap_text(gap)}"


def _choose_bar_quantity(
    bounds: Bounds,
) -> tuple[Literal["measurements", "trials", "seconds"], float | None]:
    """Return what the progress bar counts, and its bound, if any.

    It counts measurements, trials or seconds.
    """
    if bounds.measurements is not None:
        return "measurements", bounds.measurements
    if bounds.trials is None and bounds.time_s is not None:
        return "seconds", bounds.time_s
    return "trials", bounds.trials


def _ago(seconds: float) -> str:
    return f"{seconds_text(int(seconds))} ago" if seconds >= 1 else "just now"
