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
from dse.api.notebook.progress import Cell, in_notebook
from dse.core.trial import Trial
from dse.schema.study.budget import Budget
from dse.schema.study.overrides import BudgetOverrides, stated_budget, stated_executor
from dse.services.progress.panel import StudyPanel
from dse.services.progress.screen import screen_for
from dse.study.study import StudyEngine

LEAST_S = 0.25
"""A cell is drawn anew at most four times a second, ..."""

SHARE = 0.04
"""... and less often where drawing would take more than this share of the time."""

INTERRUPTED = "interrupted; run() goes on"


class Interrupted(KeyboardInterrupt):
    """Interrupt by the user, which a notebook shows without a traceback."""

    def _render_traceback_(self) -> list[str]:
        return [INTERRUPTED]


class ProgressDisplay(Protocol):
    """Progress display of a run, until it ends."""

    def __enter__(self) -> ProgressDisplay: ...

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None: ...

    def finished(self, trial: Trial) -> None:
        """A trial has finished: called for each, it costs next to nothing."""

    def searched(self, done: int, total: int) -> None:
        """Show how many of all legal designs the optimizer has searched."""

    def chose(self, words: str) -> None:
        """Show the choice of ``auto``."""

    def notice(self, words: str) -> None:
        """That the storage is away, or back."""

    def ends(self, reason: str) -> None:
        """Show why the run is over."""


class ShownRun:
    """A run that is shown while it works, and that ends with the first failure of a function.

    Args:
        study: what is run.
        stops: when it stops, instead of the study's budget.
        executor: where evaluations run, instead of the study's.
        workers: how many evaluations at once.
        on_error: what becomes of an exception while no trial has come out.

    Raises:
        SpecError: there is no such budget, executor or ``on_error``.
        StudyError: an evaluator cannot be run here, or is another than it was.
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
        """Run to the end of the budget; return why it stopped."""
        with shown(self._study, self._budget, progress=progress) as told_to:
            reason = self._study.run(
                budget=self._budget,
                executor=self._executor,
                on_finished=both(both(told_to.finished, self.failure.finished), on_finished),
                on_choice=told_to.chose,
                on_progress=told_to.searched,
                on_notice=told_to.notice,
            )
            told_to.ends(reason)
        return reason


def shown(study: StudyEngine, budget: Budget, *, progress: bool | None) -> ProgressDisplay:
    """Return where a run is shown: in a notebook cell, in a terminal, or nowhere.

    It is shown nowhere where ``progress`` is false, or where there is neither a notebook nor a
    terminal and ``progress`` is not set.
    """
    if progress is False:
        return Unseen()
    if in_notebook():
        return InCell(StudyPanel(study, budget))
    if progress or sys.stderr.isatty():
        return InTerminal(StudyPanel(study, budget))
    return Unseen()


def both(
    first: Callable[[Trial], None], second: Callable[[Trial], None] | None
) -> Callable[[Trial], None]:
    """Return a function that passes each trial to both, or ``first`` if it is alone."""
    if second is None:
        return first

    def tell(trial: Trial) -> None:
        first(trial)
        second(trial)

    return tell


class Unseen:
    """Nothing is shown."""

    def __enter__(self) -> Unseen:
        return self

    def __exit__(self, *_: object) -> None: ...

    def finished(self, trial: Trial) -> None: ...

    def searched(self, done: int, total: int) -> None: ...

    def chose(self, words: str) -> None: ...

    def notice(self, words: str) -> None: ...

    def ends(self, reason: str) -> None: ...


class InTerminal:
    """The panel of ``dse run``; lines now and then, where the error stream is a file."""

    def __init__(self, panel: StudyPanel) -> None:
        self._panel = panel
        self._screen = screen_for(quiet=False)
        self.searched = panel.searched

    def __enter__(self) -> InTerminal:
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


class InCell:
    """Notebook cell that follows a panel; a thread of its own draws it without blocking."""

    def __init__(self, panel: StudyPanel) -> None:
        self._cell = Cell()
        self._panel = panel
        self.finished = panel.finished
        self.searched = panel.searched
        self._remark = "running"
        self._closed = Event()
        self._thread = Thread(target=copy_context().run, args=(self._follow,), daemon=True)

    def __enter__(self) -> InCell:
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
