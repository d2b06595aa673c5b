"""The studies of a sweep: every optimizer with every seed, run and compared."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Protocol

from dse.analysis.comparison import ComparisonOptions, ComparisonResult, compare
from dse.analysis.run_groups import RunGroup
from dse.analysis.runs import SWEPT, Run
from dse.core.trial import Event, Trial
from dse.protocols import Storage
from dse.schema.models import PluginSpec
from dse.schema.study.budget import Budget
from dse.schema.study.overrides import BudgetOverrides, stated_budget, stated_executor
from dse.schema.study.plan import Plan
from dse.study.study import DEFAULT_STORAGE, StudyEngine, opened_storage


class Watching(Protocol):
    """Observer of a running sweep."""

    def begins(self, study: StudyEngine, budget: Budget) -> None:
        """A study begins or goes on."""

    def finished(self, trial: Trial) -> None:
        """A trial of it has finished."""

    def ended(self) -> None:
        """The study has ended, now or before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepStudy:
    """One study of a sweep: what is asked by another optimizer, or with another seed."""

    asked: Callable[..., Plan]
    where: str
    stem: str
    optimizer: PluginSpec
    seed: int
    storage: Storage

    @property
    def name(self) -> str:
        """Name of the study."""
        return f"{self.stem}.{self.optimizer.use}.{self.seed}"

    def open(self) -> StudyEngine:
        """The study, begun now or gone on with.

        Raises:
            SpecErrors: the file has mistakes, or the optimizer does not fit it.
            StudyError: a study of this name exists and is another question.
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
    """All studies of a sweep, one seed of every optimizer after the other.

    So what was not finished lacks seeds, and no optimizer.
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
        """The sweep of a study; its own optimizer keeps its options.

        Args:
            asked: the study's plan, by another ``optimizer`` or with another ``seed`` if told so.
            optimizers: by name; the study's own without any.
            seeds: how many for each, from the study's on.
            where: what an error points at.
            name: instead of the file's ``study:``.
            storage: a storage or its URL, instead of the file's.

        Raises:
            SpecErrors: the file has mistakes.
        """
        plan = asked()
        own = plan.optimizer
        named = [
            own if use == own.use else PluginSpec(use=use) for use in dict.fromkeys(optimizers)
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
        told: BudgetOverrides,
        executor: str | Mapping[str, Any] | None = None,
        workers: int | None = None,
    ) -> None:
        """Every study to its end, but for those that have ended with these very bounds before.

        Args:
            watching: told what happens.
            told: when each stops, instead of the study's budget.
            executor: instead of the study's.
            workers: how many evaluations at once.

        Raises:
            SpecError: there is no such budget.
            StudyError: a study cannot be run.
        """
        for member in self.members:
            study = member.open()
            budget = stated_budget(study.plan, told)
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
        """The optimizers side by side; from the joint nadir where the file states no reference."""
        groups: dict[str, list[Run]] = {}
        for member in self.members:
            study = StudyEngine.load(member.name, member.storage)
            price = study.plan.budget.price_per_s
            run = Run.of(study.name, study.problem, study.finished, price)
            groups.setdefault(member.optimizer.use, []).append(run)
        told = [RunGroup(name, tuple(runs)) for name, runs in groups.items()]
        return compare(told, ComparisonOptions(joint_nadir=not self.stated))


def _format_bounds(study: StudyEngine, budget: Budget) -> str:
    """Return the text that is recorded for a study that ended with this budget."""
    bounds = asdict(study.bounds(budget))
    words = ", ".join(f"{key} {value}" for key, value in bounds.items() if value)
    return f"bounds: {words or 'none'}"
