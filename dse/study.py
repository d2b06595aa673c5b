"""A study: where plan, storage, optimizer and executor meet; for notebooks as for the command."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

from dse.analysis.scenarios import Contrast, contrast
from dse.choice import executor_for, needs_cost, optimizer_for
from dse.choice import whole as searched_whole
from dse.core.design import Design
from dse.core.pareto import ParetoSet
from dse.core.problem import Problem
from dse.core.trial import Event, Trial
from dse.errors import StudyError, nearest
from dse.loop import Bounds, Loop
from dse.optimizers.aside import Aside, for_free
from dse.optimizers.completion import Completion, worthwhile
from dse.optimizers.first import First
from dse.optimizers.nothing import Nothing
from dse.pipeline import Readings
from dse.protocols import Executor, Optimizer, Storage
from dse.registry import load, make, options_of
from dse.schema.budgets import Budget
from dse.schema.inherited import Inherited
from dse.schema.lineage import Asked
from dse.schema.models import NAME, PluginSpec
from dse.schema.plan import AUTO, Plan, difference, plan_of
from dse.schema.priors import inherited
from dse.schema.record import begun_with, identity_of, kept_plan, plain
from dse.schema.settled import check_settled, settled

DEFAULT_STORAGE = "sqlite:///dse.db"

COMPLETED = (AUTO, "grey-box")
"""Optimizers whose studies end with the designs that share what was measured."""


class Study:
    """A named question with its record; made by :meth:`open` or :meth:`load`."""

    def __init__(self, plan: Plan, storage: Storage, name: str, *, changed: str = "") -> None:
        self.inherited = Inherited.of((storage.spec(name) or {}).get("prior"))
        known = replace(plan.problem, priors=self.inherited.priors)
        self.plan = settled(replace(plan, problem=known), storage.trials(name))
        self.storage = storage
        self.name = name
        self._changed = changed

    @staticmethod
    def open(
        path: str | Path,
        *,
        name: str | None = None,
        storage: str | Storage | None = None,
        seed: int | None = None,
        carried: Mapping[str, Any] | None = None,
    ) -> Study:
        """The study that a file describes: begun now, or gone on with if it exists.

        Args:
            path: the study file.
            name: instead of the file's ``study:``.
            storage: a storage or its URL, instead of the file's ``storage:``.
            seed: instead of the file's.
            carried: how many ``trials`` of another study it begins with, and ``from`` which.

        Raises:
            SpecErrors: the file has mistakes.
            StudyError: a study of this name exists and is another question.
        """
        plan = plan_of(Path(path).resolve(), seed=seed)
        opened = opened_storage(storage or plan.storage or DEFAULT_STORAGE, begins=True)
        name = plan.name if name is None else name
        if not re.fullmatch(NAME, name):
            raise StudyError(f"{name!r} is no name", hint="letters, digits, '_', '-', '.', spaces")
        stored = opened.spec(name)
        if stored is None:
            begun = {**begun_with(plan), **({"carried": carried} if carried else {})}
            if plan.prior:
                begun["prior"] = _left(plan, opened, whole=not carried).plain()
            opened.create(name, begun)
            return Study(plan, opened, name)
        changed = difference(identity_of(stored), plain(plan.identity))
        if changed:
            raise StudyError(
                f"the study {name!r} exists and asks something else: {changed}",
                where=str(path),
                hint="give this one another name (--name), or carry its trials over to it: "
                f"dse studies migrate {name} {path}",
            )
        return Study(plan, opened, name)

    @staticmethod
    def load(name: str, storage: str | Storage | None = None) -> Study:
        """The study of that name, rebuilt from its own record.

        Raises:
            StudyError: there is none.
        """
        url = storage or DEFAULT_STORAGE
        opened = opened_storage(url)
        spec = opened.spec(name)
        if spec is None:
            where = f" in {url}" if isinstance(url, str) else ""
            raise StudyError(
                f"there is no study {name!r}{where}",
                hint=nearest(name, opened.studies()) + "; other storages: --storage URL",
            )
        plan = kept_plan(spec)
        changed = difference(identity_of(spec), plain(plan.identity))
        return Study(plan, opened, name, changed=changed)

    @property
    def problem(self) -> Problem:
        """The question as optimizers see it."""
        return self.plan.problem

    @property
    def trials(self) -> list[Trial]:
        """All trials by number."""
        return self.storage.trials(self.name)

    @property
    def finished(self) -> list[Trial]:
        """The finished trials in the order in which they were finished."""
        trials = self.trials
        return [trials[number] for number in self.storage.finished_order(self.name)]

    @property
    def events(self) -> list[Event]:
        """What happened beside the trials, oldest first."""
        return self.storage.events(self.name)

    @property
    def front(self) -> ParetoSet:
        """The designs that no other beats, with the hypervolume."""
        return ParetoSet.of(self.problem, self.finished)

    @property
    def contrast(self) -> Contrast | None:
        """Who wins under which scenario; ``None`` for a study without scenarios."""
        if not self.plan.alone:
            return None
        return contrast(self.problem, self.plan.alone, self.plan.weights, self.finished)

    @property
    def carried(self) -> int:
        """How many trials came from another study and count for no budget."""
        spec = self.storage.spec(self.name) or {}
        return int(spec.get("carried", {}).get("trials", 0)) + len(self.inherited.designs)

    @property
    def exact(self) -> bool:
        """True if every legal design was taken into account."""
        return any(event.kind == "exact" for event in self.events)

    @property
    def provenance(self) -> Mapping[str, str]:
        """The versions and the machine that the study was begun with."""
        spec = self.storage.spec(self.name)
        return dict(spec.get("provenance", {})) if spec else {}

    def run(
        self,
        *,
        budget: Budget | None = None,
        executor: PluginSpec | None = None,
        on_finished: Callable[[Trial], None] = lambda _: None,
        on_choice: Callable[[str], None] = lambda _: None,
        on_progress: Callable[[int, int], None] = lambda *_: None,
    ) -> str:
        """Go on until the budget is used up; the reason for stopping is returned.

        Args:
            budget: instead of the study's.
            executor: instead of the study's.
            on_finished: told each trial when it is stored.
            on_choice: told in words what ``auto`` chose.
            on_progress: told how much of how much is done in an optimizer's long step.

        Raises:
            StudyError: an evaluator is another than the one that the study began with.
        """
        if self._changed:
            raise StudyError(
                f"the study {self.name!r} was begun with something else: {self._changed}",
                hint="its trials can be read, but new ones would not be comparable",
            )
        bounds = self.bounds(budget)
        for event in self.events:
            if event.kind == "choice":
                on_choice(event.text)
        if self.plan.prior:
            self._note(Event(kind="prior", text=self.inherited.words()))
        self._measure_awaited(bounds, executor, on_finished)
        optimizer = self._optimizer(bounds, executor, on_finished, on_choice)
        if hasattr(optimizer, "on_progress"):
            optimizer.on_progress = on_progress
        if bounds.gain is not None and not hasattr(optimizer, "expected_gain"):
            text = "the optimizer does not tell what it expects to gain: 'gain' ends nothing"
            self._note(Event(kind="gain", text=text))
        reason = self._loop(optimizer, bounds, executor, on_finished)
        if self.plan.optimizer.use in COMPLETED and worthwhile(self.problem):
            self._complete(on_finished)
        self._contrast(on_finished)
        return reason

    def _measure_awaited(
        self, bounds: Bounds, executor: PluginSpec | None, on_finished: Callable[[Trial], None]
    ) -> None:
        """Measure the baselines that objectives are told relative to, before anything else."""
        if self.plan.awaited:
            self._loop(Nothing(), bounds, executor, on_finished)
            self.plan = settled(self.plan, self.trials)
            check_settled(self.plan, self.trials)

    def _note(self, event: Event) -> None:
        """Keep the event, unless it was said before."""
        if (event.kind, event.text) not in {(e.kind, e.text) for e in self.events}:
            self.storage.record(self.name, [event])

    def _complete(self, on_finished: Callable[[Trial], None]) -> None:
        """Add the designs that share what was measured: they cost nothing and fill the front."""
        here = PluginSpec(use="serial", batch=Completion.batch)  # type: ignore[call-arg]
        self._loop(Completion(self.problem), Bounds(), here, on_finished)

    def _contrast(self, on_finished: Callable[[Trial], None]) -> None:
        """Add what single scenarios would choose, as far as it costs no measurement."""
        for scenario, problem in self.plan.alone.items():
            optimizer = for_free(problem, exact=self.exact)
            if optimizer is not None:
                aside = Aside(scenario, optimizer)
                here = PluginSpec(use="serial", batch=Aside.batch)  # type: ignore[call-arg]
                self._loop(aside, Bounds(), here, on_finished)

    def bounds(self, budget: Budget | None = None) -> Bounds:
        """The budget (the study's own without one) with sane ends: no study runs for ever.

        Without any bound a measured study stops after 100 measurements and a modelled one after
        20,000 trials; an exhaustive or factorial one when all is done, and a bound on measurements
        is none for it where nothing is measured. What costs no measurement is bounded by twenty
        trials for each one that does.
        """
        told = budget or self.plan.budget
        measurements, trials = told.measurements, told.trials
        measured = bool(self.problem.measured)
        whole = self.plan.optimizer.use in ("exhaustive", "decompose", "factorial") or (
            self.plan.optimizer.use == AUTO and searched_whole(self.problem)
        )
        free = (measurements, trials, told.time_s, told.cost) == (None, None, None, None)
        if free and not whole:
            measurements, trials = (100, None) if measured else (None, 20_000)
        if measurements is not None and trials is None and not (whole and not measured):
            trials = 20 * measurements if measured else measurements
        if trials is not None:
            trials += self.carried
        return Bounds(
            measurements=measurements if measured else None,
            trials=trials,
            time_s=told.time_s,
            cost=told.cost,
            price_per_s=told.price_per_s,
            gain=told.gain,
        )

    def _loop(
        self,
        optimizer: Optimizer,
        bounds: Bounds,
        executor: PluginSpec | None,
        on_finished: Callable[[Trial], None],
    ) -> str:
        runner = self._executor(executor or self.plan.executor, optimizer)
        readings = Readings(self.plan.pipeline)
        for reading in self.inherited.readings:
            readings.learn(reading.trial())
        baselines = [Design(d) for d in self.problem.baselines]  # type: ignore[arg-type]
        with closing(runner):
            return Loop(
                study=self.name,
                storage=self.storage,
                optimizer=optimizer,
                executor=runner,
                readings=readings,
                stages=self.plan.stages,
                bounds=bounds,
                first=list(dict.fromkeys([*self.inherited.designs, *baselines])),
                on_finished=on_finished,
            ).run()

    def _optimizer(
        self,
        bounds: Bounds,
        executor: PluginSpec | None,
        on_finished: Callable[[Trial], None],
        on_choice: Callable[[str], None],
    ) -> Optimizer:
        spec = self.plan.optimizer
        if spec.use != AUTO:
            made: Optimizer = make("optimizers", spec.use, self.problem, **spec.options)
            return made
        chosen = next((e.text for e in self.events if e.kind == "choice"), None)
        if chosen is None:
            if needs_cost(self.problem):
                first = First(self.problem)
                one_more = replace(bounds, trials=self.carried + 1)
                self._loop(first, one_more, executor, on_finished)
            cost_s = self._cost_s()
            choice = optimizer_for(self.problem, bounds.measurements, cost_s)
            chosen = f"{choice.use}: {choice.reason}"
            self.storage.record(self.name, [Event(kind="choice", text=chosen)])
            on_choice(chosen)
        picked: Optimizer = make("optimizers", chosen.partition(":")[0], self.problem)
        return picked

    def _cost_s(self) -> float | None:
        """What the first trial of its own took; what came from another study was free."""
        trials = self.trials[self.carried : self.carried + 1]
        return trials[0].cost_s if trials and trials[0].state.finished else None

    def _executor(self, spec: PluginSpec, optimizer: Optimizer) -> Executor:
        use, options = spec.use, spec.options
        if use == AUTO:
            use = executor_for(self.problem).use
            if use == "processes":
                options = {"workers": 1, **options}
        if use == "serial" and not self.problem.measured:
            options = {"batch": getattr(optimizer, "batch", 1), **options}
        known = options_of(load("executors", use))
        if spec.use == AUTO:
            options = {key: value for key, value in options.items() if key in known}
        made: Executor = make("executors", use, self.plan.pipeline, **options)
        return made


def _left(plan: Plan, storage: Storage, *, whole: bool) -> Inherited:
    """What the earlier studies that the file names leave to a new one.

    Without ``whole`` no designs to begin with: the new study begins with others.
    """
    new = Asked.of(plan, plan.identity)
    found = Inherited(studies={})
    for one in plan.prior:
        earlier = Study.load(one.study, one.storage or storage)
        spec = earlier.storage.spec(one.study) or {}
        old = Asked.of(earlier.plan, identity_of(spec))
        found = found.joined(inherited(one.study, new, old, earlier.finished))
    return found if whole else replace(found, designs=())


def opened_storage(url: str | Storage, *, begins: bool = False) -> Storage:
    """The storage at a URL: the plug-in is found by the URL's scheme.

    A file that is not there holds no studies; it is made when one ``begins``, not by looking.

    Raises:
        PluginError: no storage has that scheme.
        StorageError: it cannot be opened.
    """
    if not isinstance(url, str):
        return url
    scheme = url.partition(":")[0].partition("+")[0]
    file = url.removeprefix("sqlite:///").partition("?")[0]
    if not begins and file not in (url, "", ":memory:") and not Path(file).exists():
        scheme, url = "memory", "memory://"
    made: Storage = make("storages", scheme, url)
    return made
