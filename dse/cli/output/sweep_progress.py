"""Progress display of a sweep: the number of the present study, and its progress."""

from __future__ import annotations

import time

from dse.core.trial import Trial
from dse.schema.study.budget import Budget
from dse.services.progress.panel import StudyPanel
from dse.services.progress.progress_bar import QuantityProgressBar
from dse.services.progress.screen import screen_for
from dse.study.study import StudyEngine


class Sweeping:
    """The studies of a sweep on the error stream, one after the other in one place."""

    def __init__(self, studies: int, *, quiet: bool) -> None:
        self._screen = screen_for(quiet=quiet)
        self._quiet = quiet
        self._way = QuantityProgressBar("studies", studies, 0, clock=time.monotonic)
        self._panel: StudyPanel | None = None
        self._ended = 0

    def __enter__(self) -> Sweeping:
        return self

    def __exit__(self, *_: object) -> None:
        self._screen.close(wipe=True)

    def begins(self, study: StudyEngine, budget: Budget) -> None:
        """A study begins or goes on."""
        if not self._quiet:
            self._panel = StudyPanel(study, budget, above=self._way)
            self._screen.show(self._panel)

    def finished(self, trial: Trial) -> None:
        """A trial of it has finished."""
        if self._panel is not None:
            self._panel.finished(trial)
            self._screen.tick()

    def ended(self) -> None:
        """The study has ended, now or before."""
        self._ended += 1
        self._way.at(self._ended)
        if self._panel is not None:
            self._panel.look(finally_=True)
            self._screen.say(f"{self._way.count}: {self._panel.name}, {self._panel.line}")
            self._panel = None
