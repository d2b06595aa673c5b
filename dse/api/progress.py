"""Progress display of ``Study.run``: a cell in a notebook, a panel in a terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from contextvars import copy_context
from threading import Event, Thread
from typing import Any, Protocol

from dse.api.first_failure import FirstFailure, OnError
from dse.api.notebook.live import running_html
from dse.api.notebook.notebook_output import Cell, in_notebook
from dse.core.trial import Trial
from dse.schema.study.budget import Budget
from dse.schema.study.overrides import BudgetOverrides, stated_budget, stated_executor
from dse.services.progress.panel import StudyPanel
from dse.services.progress.screen import screen_for
from dse.study.study_engine import StudyEngine

LEAST_S = 0.25
"""Minimum interval between two redraws of a notebook cell, in seconds."""

SHARE = 0.04
"""Maximum share of the time spent drawing; slow drawings are redrawn less often."""

INTERRUPTED = "interrupted; call run() to continue"


class Interrupted(KeyboardInterrupt):
    """Raised when the user interrupts a run; a notebook shows it without a traceback."""

    def _render_traceback_(self) -> list[str]:
        return [INTERRUPTED]


class ProgressDisplay(Protocol):
    """Interface of a run's progress display; a context manager around the run."""

    def __enter__(self) -> ProgressDisplay: ...

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None: ...

    def finished(self, trial: Trial) -> None:
        """Count a finished trial; the method is called for every trial, so it must be fast."""

    def searched(self, done: int, total: int) -> None:
        """Show how many of all legal designs an exhaustive search has evaluated."""

    def chose(self, words: str) -> None:
        """Show which optimizer ``auto`` has chosen, as stated in ``words``."""

    def notice(self, words: str) -> None:
        """Show that the storage has become unavailable or available, as stated in ``words``."""

    def ends(self, reason: str) -> None:
        """Show the reason why the run has ended."""


class ShownRun:
    """Run of a study with a progress display, which stops at an early error of user functions.

    Args:
        study: the study to run.
        stops: a budget that replaces the study's.
        executor: an executor that replaces the study's.
        workers: the number of concurrent evaluations.
        on_error: handling of an exception while all trials have failed: ``raise`` or ``keep``.

    Raises:
        SpecError: the budget, executor or ``on_error`` is invalid.
        StudyError: an evaluator cannot run here, or has changed since the study was created.
    """

    def __init__(
        self,
        study: StudyEngine,
        stops: BudgetOverrides,
        executor: str | Mapping[str, Any] | None,
        workers: int | None,
        on_error: OnError,
    ) -> None:
        self._study = study
        self._budget = stated_budget(study.plan, stops)
        study.check_runnable()
        self._executor = stated_executor(study.plan, executor, workers)
        self.failure = FirstFailure(study, on_error)

    def run(self, on_finished: Callable[[Trial], None] | None, *, progress: bool | None) -> str:
        """Run the study to the end of its budget; return why it stopped."""
        with shown(self._study, self._budget, progress=progress) as display:
            reason = self._study.run(
                budget=self._budget,
                executor=self._executor,
                on_finished=both(both(display.finished, self.failure.finished), on_finished),
                on_choice=display.chose,
                on_progress=display.searched,
                on_notice=display.notice,
            )
            display.ends(reason)
        return reason


def shown(study: StudyEngine, budget: Budget, *, progress: bool | None) -> ProgressDisplay:
    """Return the display of a run: a notebook cell, a terminal panel, or none.

    There is no display if ``progress`` is false, or if it is ``None`` and there is neither a
    notebook nor a terminal.
    """
    if progress is False:
        return NoProgressDisplay()
    if in_notebook():
        return NotebookProgress(StudyPanel(study, budget))
    if progress or sys.stderr.isatty():
        return TerminalProgress(StudyPanel(study, budget))
    return NoProgressDisplay()


def both(
    first: Callable[[Trial], None], second: Callable[[Trial], None] | None
) -> Callable[[Trial], None]:
    """Return a function that calls both functions with each finished trial.

    If ``second`` is ``None``, ``first`` itself is returned.
    """
    if second is None:
        return first

    def tell(trial: Trial) -> None:
        first(trial)
        second(trial)

    return tell


class NoProgressDisplay:
    """Progress display that shows nothing."""

    def __enter__(self) -> NoProgressDisplay:
        return self

    def __exit__(self, *_: object) -> None: ...

    def finished(self, trial: Trial) -> None: ...

    def searched(self, done: int, total: int) -> None: ...

    def chose(self, words: str) -> None: ...

    def notice(self, words: str) -> None: ...

    def ends(self, reason: str) -> None: ...


class TerminalProgress:
    """Progress display as a terminal panel; as occasional lines if the error stream is a file."""

    def __init__(self, panel: StudyPanel) -> None:
        self._panel = panel
        self._screen = screen_for(quiet=False)
        self.searched = panel.searched

    def __enter__(self) -> TerminalProgress:
        self._screen.show(self._panel)
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._screen.close(wipe=kind is not None)
        if kind is not None and issubclass(kind, KeyboardInterrupt):
            self._screen.say(INTERRUPTED)

    def finished(self, trial: Trial) -> None:
        self._panel.finished(trial)
        self._screen.tick()

    def chose(self, words: str) -> None:
        self._screen.say(f"auto picked {words}")

    def notice(self, words: str) -> None:
        self._screen.say(words)

    def ends(self, reason: str) -> None: ...


class NotebookProgress:
    """Progress display in a notebook cell; its own thread redraws it without blocking the run."""

    def __init__(self, panel: StudyPanel) -> None:
        self._cell = Cell()
        self._panel = panel
        self.finished = panel.finished
        self.searched = panel.searched
        self._remark = "running"
        self._closed = Event()
        self._thread = Thread(target=copy_context().run, args=(self._follow,), daemon=True)

    def __enter__(self) -> NotebookProgress:
        self._draw()
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._closed.set()
        self._thread.join()
        interrupted = kind is not None and issubclass(kind, KeyboardInterrupt)
        if kind is not None:
            self._remark = INTERRUPTED if interrupted else "ended by an error"
        self._draw()
        if interrupted:
            raise Interrupted from None

    def chose(self, words: str) -> None:
        self._remark = f"running; auto picked {words}"

    def notice(self, words: str) -> None:
        self._remark = f"running; {words}"

    def ends(self, reason: str) -> None:
        self._remark = reason

    def _follow(self) -> None:
        rest_s = LEAST_S
        while not self._closed.wait(rest_s):
            started = time.thread_time()
            self._draw()
            rest_s = max(LEAST_S, (time.thread_time() - started) / SHARE)

    def _draw(self) -> None:
        self._panel.look(finally_=self._closed.is_set())
        self._cell.show(running_html(self._panel, self._remark), self._panel.line)
