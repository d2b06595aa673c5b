"""What is shown while a study runs: how far, how good, how long still."""

from __future__ import annotations

from types import TracebackType

from dse.core.trial import Trial
from dse.live.panel import StudyPanel
from dse.live.screen import screen_for
from dse.schema.budgets import Budget
from dse.study import Study


class Progressing:
    """One run of a study on the error stream: a panel, a line now and then, or nothing."""

    def __init__(self, study: Study, budget: Budget, *, quiet: bool) -> None:
        self._screen = screen_for(quiet=quiet)
        self._panel = None if quiet else StudyPanel(study, budget)

    def __enter__(self) -> Progressing:
        if self._panel is not None:
            self._screen.show(self._panel)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, *_: BaseException | TracebackType | None
    ) -> None:
        self._screen.close(wipe=kind is not None)

    def finished(self, trial: Trial) -> None:
        """Take a trial into account."""
        if self._panel is not None:
            self._panel.finished(trial)
            self._screen.tick()

    def searched(self, done: int, total: int) -> None:
        """How many legal designs of how many the optimizer has looked at."""
        if self._panel is not None:
            self._panel.searched(done, total)
            self._screen.tick()

    def say(self, text: str) -> None:
        """What ``auto`` chose, in a line that stays."""
        self._screen.say(f"auto picked {text}")
