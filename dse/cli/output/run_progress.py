"""Progress display of a running study: progress, quality and time left."""

from __future__ import annotations

from types import TracebackType

from dse.cli.options import say
from dse.cli.output.failure_text import gist
from dse.core.trial import State, Trial
from dse.schema.study.budget import Budget
from dse.services.progress.panel import StudyPanel
from dse.services.progress.screen import screen_for
from dse.study.study_engine import StudyEngine


class RunProgress:
    """Progress display of a run on the error stream: a panel, occasional lines, or nothing."""

    def __init__(self, study: StudyEngine, budget: Budget, *, quiet: bool) -> None:
        self._screen = screen_for(quiet=quiet)
        self._panel = None if quiet else StudyPanel(study, budget)
        self._failures: set[str] = set()

    def __enter__(self) -> RunProgress:
        if self._panel is not None:
            self._screen.show(self._panel)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, *_: BaseException | TracebackType | None
    ) -> None:
        self._screen.close(wipe=kind is not None)

    def finished(self, trial: Trial) -> None:
        """Count a finished trial; report a failure at once if it is the first of its kind.

        A user who saw failures only at the end would have spent the budget on failing trials.
        """
        failure = trial.failure if trial.state is State.FAILED else None
        if failure is not None and failure.kind not in self._failures:
            self._failures.add(failure.kind)
            self._screen.say(
                f"trial {trial.number} failed ({failure.kind}): {gist(failure.reason)}"
            )
        if self._panel is not None:
            self._panel.finished(trial)
            self._screen.tick()

    def searched(self, done: int, total: int) -> None:
        """Show how many of all legal designs the optimizer has searched."""
        if self._panel is not None:
            self._panel.searched(done, total)
            self._screen.tick()

    def notice(self, text: str) -> None:
        """Report that the storage is unreachable or back, also in a quiet run."""
        if self._panel is None:
            say(text)
        else:
            self._screen.say(text)

    def say(self, text: str) -> None:
        """Print which optimizer ``auto`` has chosen, in a line that remains on the screen."""
        self._screen.say(f"auto picked {text}")
