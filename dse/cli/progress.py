"""The live line of a running study: how far, how good, how long still."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from dse.core.pareto import hypervolume, reference
from dse.core.problem import Problem
from dse.core.trial import State, Trial
from dse.schema.budgets import Budget
from dse.study import Study


class Watch:
    """Follows the trials as they finish: counts, and the hypervolume so far."""

    def __init__(self, problem: Problem, trials: Sequence[Trial]) -> None:
        self._problem = problem
        self._trials = list(trials)
        self._point = reference(problem, trials)
        self._front = np.zeros((0, len(problem.objectives)))
        self.failed = 0
        self.measured = 0
        self.hypervolume: float | None = None
        for trial in trials:
            self._count(trial)
        self._enter(trials)

    def finished(self, trial: Trial) -> None:
        """Take a trial into account."""
        self._count(trial)
        if self._point is None:
            self._trials.append(trial)
            self._point = reference(self._problem, self._trials)
            if self._point is None:
                return
            self._enter(self._trials)
            self._trials = []
        else:
            self._enter([trial])

    def _count(self, trial: Trial) -> None:
        self.failed += trial.state is State.FAILED
        self.measured += trial.measured > 0 or trial.state is State.FAILED

    def _enter(self, trials: Sequence[Trial]) -> None:
        if self._point is None or not trials:
            return
        kept = self._problem.feasible(trials)
        for row in self._problem.trial_losses(trials)[kept]:
            if not (self._front <= row).all(axis=1).any():
                worse = (row <= self._front).all(axis=1)
                self._front = np.vstack([self._front[~worse], row])
        self.hypervolume = hypervolume(self._front, self._point)


class Progressing:
    """A progress bar on the error stream for one run of a study."""

    def __init__(self, study: Study, budget: Budget, *, quiet: bool) -> None:
        bounds = study.bounds(budget)
        before = study.trials
        self._by_measurement = bounds.measurements is not None
        self._watch = Watch(study.problem, before)
        self._ended = sum(trial.state.finished for trial in before)
        self._bar = Progress(
            SpinnerColumn(),
            BarColumn(bar_width=28),
            MofNCompleteColumn(),
            TextColumn("{task.description}"),
            TimeElapsedColumn(),
            TextColumn("eta"),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            disable=quiet,
            refresh_per_second=4,
        )
        total = bounds.measurements if self._by_measurement else bounds.trials
        self._search: TaskID | None = None
        self._task = self._bar.add_task(self._words(), total=total, completed=self._done)

    def __enter__(self) -> Progressing:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def finished(self, trial: Trial) -> None:
        """Take a trial into account."""
        self._watch.finished(trial)
        self._ended += 1
        self._bar.update(self._task, completed=self._done, description=self._words())

    def searched(self, done: int, total: int) -> None:
        """How many legal designs of how many the optimizer has looked at."""
        if self._search is None:
            self._search = self._bar.add_task("designs searched", total=total, completed=done)
        self._bar.update(self._search, completed=done)

    def say(self, text: str) -> None:
        """A line above the bar."""
        if not self._bar.disable:
            self._bar.console.print(f"auto picked {text}", style="dim", highlight=False)

    def stop(self) -> None:
        """Take the bar away, before something is said below it."""
        self._bar.stop()

    @property
    def _done(self) -> int:
        return self._watch.measured if self._by_measurement else self._ended

    def _words(self) -> str:
        watch = self._watch
        word = "measurements" if self._by_measurement else "trials"
        volume = "-" if watch.hypervolume is None else f"{watch.hypervolume:.5g}"
        failed = f", {watch.failed} failed" if watch.failed else ""
        return f"{word}, hypervolume {volume}{failed}"
