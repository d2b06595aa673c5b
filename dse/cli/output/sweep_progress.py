"""Progress display of a sweep: number of ended studies, and progress of the current one."""

from __future__ import annotations

import time

from dse.core.trial import Trial
from dse.schema.study.budget import Budget
from dse.services.progress.panel import StudyPanel
from dse.services.progress.progress_bar import QuantityProgressBar
from dse.services.progress.screen import screen_for
from dse.study.study_engine import StudyEngine


class SweepProgress:
    """Progress display of a sweep on the error stream; its studies share one panel in turn."""

    def __init__(self, studies: int, *, quiet: bool) -> None:
        self._screen = screen_for(quiet=quiet)
        self._quiet = quiet
        self._way = QuantityProgressBar("studies", studies, 0, clock=time.monotonic)
        self._panel: StudyPanel | None = None
        self._ended = 0

    def __enter__(self) -> SweepProgress:
        return self

    def __exit__(self, *_: object) -> None:
        self._screen.close(wipe=True)

    def begins(self, study: StudyEngine, budget: Budget) -> None:
        """Show the panel of a study that starts or continues."""
        if not self._quiet:
            self._panel = StudyPanel(study, budget, above=self._way)
            self._screen.show(self._panel)

    def finished(self, trial: Trial) -> None:
        """Count a finished trial of the current study."""
        if self._panel is not None:
            self._panel.finished(trial)
            self._screen.tick()

    def ended(self) -> None:
        """Count the current study as ended, also if it had ended in an earlier sweep."""
        self._ended += 1
        self._way.at(self._ended)
        if self._panel is not None:
            self._panel.look(finally_=True)
            self._screen.say(f"{self._way.count}: {self._panel.name}, {self._panel.line}")
            self._panel = None
