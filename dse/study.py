"""A study: where plan, storage, optimizer and executor meet; for notebooks as for the command."""

from __future__ import annotations

import platform
import re
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

from dse.choice import executor_for, needs_cost, optimizer_for
from dse.core.design import Design
from dse.core.pareto import ParetoSet
from dse.core.problem import Problem
from dse.core.trial import Event, Trial
from dse.errors import StudyError, nearest
from dse.loop import Bounds, Loop
from dse.optimizers.completion import Completion, worthwhile
from dse.pipeline import Readings
from dse.protocols import Executor, Optimizer, Storage
from dse.registry import load, make, options_of
from dse.schema.models import NAME, PluginSpec
from dse.schema.plan import AUTO, Budget, Plan, difference, plan_of

DEFAULT_STORAGE = "sqlite:///dse.db"

_VERSIONS = ("dse-engine", "numpy", "torch", "botorch", "ax-platform", "pymoo", "moocore")


class Study:
    """A named question with its record; made by :meth:`open` or :meth:`load`."""

    def __init__(self, plan: Plan, storage: Storage, name: str, *, changed: str = "") -> None:
        self.plan = plan
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
            opened.create(name, {**_spec(plan), **({"carried": carried} if carried else {})})
            return Study(plan, opened, name)
        changed = difference(_identity(stored), _plain(plan.identity))
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
        plan = _kept_plan(spec)
        changed = difference(_identity(spec), _plain(plan.identity))
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
    def carried(self) -> int:
        """How many trials came from another study and count for no budget."""
        spec = self.storage.spec(self.name) or {}
        return int(spec.get("carried", {}).get("trials", 0))

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
    ) -> str:
        """Go on until the budget is used up; the reason for stopping is returned.

        Args:
            budget: instead of the study's.
            executor: instead of the study's.
            on_finished: told each trial when it is stored.
            on_choice: told in words what ``auto`` chose.

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
        optimizer = self._optimizer(bounds, executor, on_finished, on_choice)
        reason = self._loop(optimizer, bounds, executor, on_finished)
        if self.plan.optimizer.use == AUTO and worthwhile(self.problem):
            self._complete(bounds, on_finished)
        return reason

    def _complete(self, bounds: Bounds, on_finished: Callable[[Trial], None]) -> None:
        """Add the designs that share what was measured: they cost nothing and fill the front."""
        unbounded = replace(bounds, measurements=None, trials=None, time_s=None)
        here = PluginSpec(use="serial", batch=Completion.batch)  # type: ignore[call-arg]
        self._loop(Completion(self.problem), unbounded, here, on_finished)

    def bounds(self, budget: Budget | None = None) -> Bounds:
        """The budget (the study's own without one) with sane ends: no study runs for ever.

        Without any bound a measured study stops after 100 measurements and a modelled one after
        20,000 trials; an exhaustive one when all is done, and a bound on measurements is none for
        it where nothing is measured. What costs no measurement is bounded by twenty trials for
        each one that does.
        """
        told = budget or self.plan.budget
        measurements, trials = told.measurements, told.trials
        measured = bool(self.problem.measured)
        whole = self.plan.optimizer.use == "exhaustive" or (
            self.plan.optimizer.use == AUTO and not needs_cost(self.problem)
        )
        free = (measurements, trials, told.time_s) == (None, None, None)
        if free and not whole:
            measurements, trials = (100, None) if measured else (None, 20_000)
        if measurements is not None and trials is None and not (whole and not measured):
            trials = 20 * measurements if measured else measurements
        if trials is not None:
            trials += self.carried
        return Bounds(
            measurements=measurements if measured else None, trials=trials, time_s=told.time_s
        )

    def _loop(
        self,
        optimizer: Optimizer,
        bounds: Bounds,
        executor: PluginSpec | None,
        on_finished: Callable[[Trial], None],
    ) -> str:
        runner = self._executor(executor or self.plan.executor, optimizer)
        with closing(runner):
            return Loop(
                study=self.name,
                storage=self.storage,
                optimizer=optimizer,
                executor=runner,
                readings=Readings(self.plan.pipeline),
                bounds=bounds,
                first=[Design(d) for d in self.problem.baselines],  # type: ignore[arg-type]
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
                first = _First(self.problem)
                self._loop(first, replace(bounds, trials=1), executor, on_finished)
            trials = self.trials
            cost_s = trials[0].cost_s if trials and trials[0].state.finished else None
            choice = optimizer_for(self.problem, bounds.measurements, cost_s)
            chosen = f"{choice.use}: {choice.reason}"
            self.storage.record(self.name, [Event(kind="choice", text=chosen)])
            on_choice(chosen)
        picked: Optimizer = make("optimizers", chosen.partition(":")[0], self.problem)
        return picked

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


class _First:
    """Asks one legal design, so that ``auto`` can see what a measurement costs."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem

    def ask(self, count: int, pending: object = ()) -> list[Design]:  # noqa: ARG002
        return self._problem.space.sample(1, self._problem.rng(0)).designs()

    def tell(self, finished: object) -> None:
        """Nothing is learnt."""

    def events(self) -> list[Event]:
        return []


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


def _spec(plan: Plan) -> dict[str, Any]:
    return {
        "path": str(plan.path),
        "texts": dict(plan.texts),
        "identity": _plain(plan.identity),
        "question": plan.question,
        "provenance": _provenance(),
    }


def _kept_plan(spec: Mapping[str, Any]) -> Plan:
    """The plan of a stored study, from the texts that it was begun with."""
    return plan_of(Path(spec["path"]), kept=spec["texts"], seed=spec["identity"]["seed"])


def _identity(spec: Mapping[str, Any]) -> Mapping[str, Any]:
    """What a stored study was begun with; an older record told its space otherwise."""
    identity: Mapping[str, Any] = spec["identity"]
    if "rules" in identity["space"]:
        return identity
    now = _plain(_kept_plan(spec).identity)
    return {**identity, **{part: now[part] for part in ("space", "order of parameters")}}


def _plain(value: Any) -> Any:
    """The value as JSON would give it back, so that stored and new identities compare equal."""
    if isinstance(value, Mapping):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    return value.item() if isinstance(value, np.generic) else value


def _provenance() -> dict[str, str]:
    found = {"python": platform.python_version(), "machine": platform.platform()}
    for package in _VERSIONS:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found
