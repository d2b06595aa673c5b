"""The studies of a sweep: every optimizer with every seed, and how they compare."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from dse.analysis.comparison import Asked, Comparison, compare
from dse.analysis.groups import Group
from dse.analysis.runs import Run
from dse.core.trial import Trial
from dse.drivers.bounds import Bounds
from dse.protocols import Storage
from dse.schema.models import PluginSpec
from dse.schema.plan import plan_of
from dse.study import DEFAULT_STORAGE, Study, opened_storage


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One study of a sweep."""

    path: Path
    stem: str
    optimizer: PluginSpec
    seed: int
    storage: Storage

    @property
    def name(self) -> str:
        """What the study is called."""
        return f"{self.stem}.{self.optimizer.use}.{self.seed}"

    def open(self) -> Study:
        """The study, begun now or gone on with.

        Raises:
            SpecErrors: the file has mistakes, or the optimizer does not fit it.
            StudyError: a study of this name exists and is another question.
        """
        return Study.open(
            self.path,
            name=self.name,
            storage=self.storage,
            seed=self.seed,
            optimizer=self.optimizer,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    """All studies of a sweep, one seed of every optimizer after the other.

    So what was not finished lacks seeds, and no optimizer.
    """

    members: tuple[Member, ...]
    stated: bool

    @staticmethod
    def of(
        path: Path,
        optimizers: Sequence[str],
        seeds: int,
        *,
        name: str | None,
        storage: str | None,
    ) -> Sweep:
        """The sweep of a study file; its own optimizer keeps its options."""
        plan = plan_of(path.resolve())
        own = plan.optimizer
        named = [
            own if use == own.use else PluginSpec(use=use) for use in dict.fromkeys(optimizers)
        ]
        opened = opened_storage(storage or plan.storage or DEFAULT_STORAGE, begins=True)
        first = plan.problem.seed
        return Sweep(
            members=tuple(
                Member(
                    path=path,
                    stem=name or plan.name,
                    optimizer=optimizer,
                    seed=seed,
                    storage=opened,
                )
                for seed in range(first, first + seeds)
                for optimizer in named or [own]
            ),
            stated=plan.problem.fixed_reference is not None,
        )

    def comparison(self) -> Comparison:
        """The optimizers side by side; from the joint nadir where the file states no reference."""
        groups: dict[str, list[Run]] = {}
        for member in self.members:
            study = Study.load(member.name, member.storage)
            price = study.plan.budget.price_per_s
            run = Run.of(study.name, study.problem, study.finished, price)
            groups.setdefault(member.optimizer.use, []).append(run)
        told = [Group(name, tuple(runs)) for name, runs in groups.items()]
        return compare(told, Asked(joint_nadir=not self.stated))


class Bar:
    """A progress bar over the studies of a sweep, on the error stream."""

    def __init__(self, studies: int, *, quiet: bool) -> None:
        self._bar = Progress(
            SpinnerColumn(),
            BarColumn(bar_width=28),
            TextColumn("{task.fields[ended]}/{task.total} studies, {task.description}"),
            TimeElapsedColumn(),
            TextColumn("eta"),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            disable=quiet,
            refresh_per_second=4,
            speed_estimate_period=3600,
        )
        self._task = self._bar.add_task("", total=studies, ended=0)
        self._ended = 0
        self._spent = 0
        self._most: int | None = None
        self._measured = False

    def __enter__(self) -> Bar:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def begins(self, study: Study, bounds: Bounds) -> None:
        """A study begins or goes on."""
        self._measured = bounds.measurements is not None
        self._most = bounds.measurements if self._measured else bounds.trials
        finished = study.finished
        self._spent = sum(t.measured > 0 for t in finished) if self._measured else len(finished)
        self._bar.update(self._task, description=study.name)

    def finished(self, trial: Trial) -> None:
        """A trial of it has finished."""
        self._spent += trial.measured > 0 if self._measured else 1
        share = min(self._spent / self._most, 1.0) if self._most else 0.0
        self._bar.update(self._task, completed=self._ended + share)

    def ended(self) -> None:
        """The study has ended."""
        self._ended += 1
        self._bar.update(self._task, completed=self._ended, ended=self._ended)
