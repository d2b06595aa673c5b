"""Sweeps: one study for each combination of optimizer and seed, run and compared."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Protocol

from dse.analysis.comparison import ComparisonOptions, ComparisonResult, compare
from dse.analysis.run_groups import RunGroup
from dse.analysis.runs import SWEPT, Run
from dse.core.trial import Event, Trial
from dse.protocols import Storage
from dse.schema.models import OptimizerSpec
from dse.schema.study.budget import Budget
from dse.schema.study.overrides import BudgetOverrides, stated_budget, stated_executor
from dse.schema.study.plan import Plan
from dse.schema.study.plugin_checks import PYTHON
from dse.study.storage_access import DEFAULT_STORAGE, opened_storage
from dse.study.study_engine import StudyEngine


class Watching(Protocol):
    """Interface of observers that are notified of the progress of a running sweep."""

    def begins(self, study: StudyEngine, budget: Budget) -> None:
        """Note for the display that a study of the sweep starts or resumes."""

    def finished(self, trial: Trial) -> None:
        """Note that a trial of the study has finished."""

    def ended(self) -> None:
        """Note that a study of the sweep has ended, in this sweep or an earlier one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepStudy:
    """One study of a sweep: the problem with one of the optimizers and seeds."""

    asked: Callable[..., Plan]
    where: str
    stem: str
    optimizer: OptimizerSpec
    seed: int
    storage: Storage

    @property
    def name(self) -> str:
        """Name of the study: the sweep's name, the optimizer and the seed, joined by dots."""
        return f"{self.stem}.{self.optimizer.use.removeprefix(PYTHON)}.{self.seed}"

    def open(self) -> StudyEngine:
        """Open the study of the sweep; create it if it does not exist.

        Raises:
            SpecErrors: the file has mistakes, or the optimizer does not fit the study.
            StudyError: a study of this name exists and has a different problem.
        """
        return StudyEngine.of(
            self.asked(seed=self.seed, optimizer=self.optimizer),
            name=self.name,
            storage=self.storage,
            where=self.where,
            hint="give this sweep another name (--name)",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    """Studies of a sweep, ordered by seed, then by optimizer.

    In this order an interrupted sweep has fewer seeds, but still all optimizers. ``stated`` is
    whether the study file states a reference point.
    """

    members: tuple[SweepStudy, ...]
    stated: bool

    @staticmethod
    def of(
        asked: Callable[..., Plan],
        optimizers: Sequence[str],
        seeds: int,
        *,
        where: str = "",
        name: str | None,
        storage: str | Storage | None,
    ) -> Sweep:
        """Return the sweep over optimizers and seeds.

        Args:
            asked: returns the study's plan; called with the ``optimizer`` and ``seed`` that replace
                those of the study file.
            optimizers: names of the optimizers; by default, only the study's own.
            seeds: number of seeds per optimizer, counted up from the study's seed.
            where: location that error messages refer to.
            name: prefix of the study names; by default the file's ``study:``.
            storage: a storage or its URL; by default the file's.

        Raises:
            SpecErrors: the file has mistakes.
        """
        plan = asked()
        own = plan.optimizer
        named = [
            own if use == own.use else OptimizerSpec(use=use) for use in dict.fromkeys(optimizers)
        ]
        opened = opened_storage(storage or plan.storage or DEFAULT_STORAGE, begins=True)
        first = plan.problem.seed
        return Sweep(
            members=tuple(
                SweepStudy(
                    asked=asked,
                    where=where,
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

    def run(
        self,
        watching: Watching,
        overrides: BudgetOverrides,
        executor: str | Mapping[str, Any] | None = None,
        workers: int | None = None,
    ) -> None:
        """Run each study of the sweep until its budget is spent.

        Studies that an earlier sweep has run to the end of the same budget are skipped.

        Args:
            watching: observer that is notified of progress.
            overrides: overrides of the budget of each study.
            executor: executor to use; by default the study's.
            workers: number of concurrent evaluations.

        Raises:
            SpecError: the budget is not valid.
            StudyError: a study cannot be run.
        """
        for member in self.members:
            study = member.open()
            budget = stated_budget(study.plan, overrides)
            ended = _format_bounds(study, budget)
            if not any(event.kind == SWEPT and event.text == ended for event in study.events):
                watching.begins(study, budget)
                study.run(
                    budget=budget,
                    executor=stated_executor(study.plan, executor, workers),
                    on_finished=watching.finished,
                )
                study.storage.record(study.name, [Event(kind=SWEPT, text=ended)])
            watching.ended()

    def comparison(self) -> ComparisonResult:
        """Compare the optimizers of the sweep, each by its runs with all seeds.

        If the study file states no reference point for the hypervolume, the worst value of each
        objective on the fronts of all runs together (their nadir) is used.
        """
        groups: dict[str, list[Run]] = {}
        for member in self.members:
            study = StudyEngine.load(member.name, member.storage)
            price = study.plan.budget.price_per_s
            run = Run.of(study.name, study.problem, study.finished, price)
            groups.setdefault(member.optimizer.use, []).append(run)
        run_groups = [RunGroup(name, tuple(runs)) for name, runs in groups.items()]
        return compare(run_groups, ComparisonOptions(joint_nadir=not self.stated))


def _format_bounds(study: StudyEngine, budget: Budget) -> str:
    """Return the text of the event that marks a study as ended; it states the budget's limits."""
    bounds = asdict(study.bounds(budget))
    words = ", ".join(f"{key} {value}" for key, value in bounds.items() if value)
    return f"bounds: {words or 'none'}"
