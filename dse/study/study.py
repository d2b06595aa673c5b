"""A study: where plan, storage, optimizer and executor meet; for notebooks as for the command."""

from __future__ import annotations

import os.path
import re
import shlex
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

from dse.analysis.scenarios import Contrast, contrast
from dse.core.metric import Kind
from dse.core.pareto import ParetoSet
from dse.core.problem import Problem
from dse.core.proof import Proof
from dse.core.trial import Event, History, Trial
from dse.core.trials import Trials
from dse.errors import StudyError, nearest
from dse.optimizers.auto import whole as searched_whole
from dse.protocols import NEW, Executor, Storage
from dse.registry import make
from dse.schema.history.differences import difference
from dse.schema.history.inherited import Inherited
from dse.schema.history.lineage import StudyLineage
from dse.schema.history.record import begun_with, identity_of, kept_plan, plain, reading_record
from dse.schema.history.transfer import inherit_from
from dse.schema.models import NAME, PluginSpec
from dse.schema.study.budget import Budget
from dse.schema.study.measured_baselines import settle_baselines
from dse.schema.study.plan import Plan, plan_of
from dse.schema.study.plugins import AUTO, check_storage
from dse.schema.yaml.source import shown
from dse.storage.trust import check_trust
from dse.study.budget import Bounds
from dse.study.run import StudyRun
from dse.system.credentials import mask_url
from dse.system.terminal_text import is_visible

DEFAULT_STORAGE = "sqlite:///dse.db"


class StudyEngine:
    """A named question with its record; made by :meth:`open` or :meth:`load`."""

    def __init__(self, plan: Plan, storage: Storage, name: str, *, changed: str = "") -> None:
        self.inherited = Inherited.of((storage.spec(name) or {}).get("prior"))
        known = replace(plan.problem, priors=self.inherited.priors)
        self.plan = settle_baselines(
            replace(plan, problem=known), storage.trials(name) if plan.awaited else ()
        )
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
        optimizer: PluginSpec | None = None,
        carried: Mapping[str, Any] | None = None,
        history: History = NEW,
    ) -> StudyEngine:
        """The study that a file describes: begun now, or gone on with if it exists.

        Args:
            path: the study file.
            name: instead of the file's ``study:``.
            storage: a storage or its URL, instead of the file's ``storage:``.
            seed: instead of the file's.
            optimizer: instead of the file's.
            carried: how many ``trials`` of another study it begins with, and ``from`` which.
            history: what it remembers from there.

        Raises:
            SpecErrors: the file has mistakes.
            StudyError: a study of this name exists and is another question.
        """
        plan = plan_of(Path(path).resolve(), seed=seed, optimizer=optimizer)
        file = shown(plan.path)
        words = ["dse", "studies", "migrate", name or plan.name, file]
        hint = f"if its evaluators are the same, carry its trials over to it: {shlex.join(words)}"
        return StudyEngine.of(
            plan,
            name=name,
            storage=storage,
            carried=carried,
            history=history,
            where=file,
            hint=f"give this one another name (--name) or, {hint}",
        )

    @staticmethod
    def of(
        plan: Plan,
        *,
        name: str | None = None,
        storage: str | Storage | None = None,
        carried: Mapping[str, Any] | None = None,
        history: History = NEW,
        where: str = "",
        hint: str = "give this one another name",
    ) -> StudyEngine:
        """The study of a plan: begun now, or gone on with if it exists.

        Args:
            plan: what is asked.
            name: instead of the plan's.
            storage: a storage or its URL, instead of the plan's.
            carried: how many ``trials`` of another study it begins with, and ``from`` which.
            history: what it remembers from there.
            where: what an error points at.
            hint: how to mend that another question has this name.

        Raises:
            StudyError: a study of this name exists and is another question.
        """
        opened = opened_storage(storage or plan.storage or DEFAULT_STORAGE, begins=True)
        name = plan.name if name is None else name
        check_name(name)
        stored = opened.spec(name) or _begun(opened, name, plan, carried, history)
        with reading_record(name):
            changed = difference(identity_of(stored), plain(plan.identity))
        if changed:
            raise StudyError(
                f"the study {name!r} exists and asks something else: {changed}",
                where=where,
                hint=hint,
            )
        return StudyEngine(plan, opened, name)

    @staticmethod
    def load(
        name: str,
        storage: str | Storage | None = None,
        *,
        objects: Mapping[str, Any] | None = None,
    ) -> StudyEngine:
        """The study of that name, rebuilt from its own record.

        Args:
            name: what it is called.
            storage: a storage or its URL.
            objects: what a Python program gives in place of texts; without, such a study can be
                read but not run.

        Raises:
            StudyError: there is none, or its record does not say what it asks.
        """
        url = storage or DEFAULT_STORAGE
        opened = opened_storage(url)
        spec = opened.spec(name)
        if spec is None:
            raise unknown_study(name, opened.studies(), url if isinstance(url, str) else "")
        with reading_record(name):
            plan = kept_plan(spec, objects)
            changed = difference(identity_of(spec), plain(plan.identity))
        return StudyEngine(plan, opened, name, changed=changed)

    @property
    def problem(self) -> Problem:
        """The question as optimizers see it."""
        return self.plan.problem

    @property
    def trials(self) -> Trials:
        """All trials by number."""
        return self.storage.trials(self.name)

    @property
    def finished(self) -> Trials:
        """The finished trials in the order in which they were finished."""
        return self.trials.finished

    @property
    def events(self) -> list[Event]:
        """Events of the study besides its trials, oldest first."""
        return self.storage.events(self.name)

    @property
    def front(self) -> ParetoSet:
        """The designs that no other beats, with the hypervolume."""
        return ParetoSet.of(self.problem, self.finished)

    @property
    def contrast(self) -> Contrast | None:
        """Winners under each scenario; ``None`` for a study without scenarios."""
        if not self.plan.alone:
            return None
        return contrast(self.problem, self.plan.alone, self.plan.weights, self.finished)

    @property
    def carried(self) -> int:
        """Number of trials that came from another study and count for no budget."""
        spec = self.storage.spec(self.name) or {}
        return int(spec.get("carried", {}).get("trials", 0)) + len(self.inherited.designs)

    @property
    def exact(self) -> bool:
        """True if every legal design was taken into account, and none of them failed."""
        return self.proof.exact

    @property
    def proof(self) -> Proof:
        """Extent to which the front is proved, and the number of designs without a value."""
        return Proof.of_study(self.problem, self.finished, self.events)

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
        on_notice: Callable[[str], None] = lambda _: None,
    ) -> str:
        """Go on until the budget is used up; the reason for stopping is returned.

        Args:
            budget: instead of the study's.
            executor: instead of the study's.
            on_finished: told each trial when it is stored.
            on_choice: told in words what ``auto`` chose.
            on_progress: told how much of how much is done in an optimizer's long step.
            on_notice: told in words that the storage is away, and that it is back.

        Raises:
            OutageError: the storage was away for longer than the study waits; it can be resumed.
            StudyError: an evaluator is another than the one that the study began with.
        """
        self.check_runnable()
        run = replace(
            self._prepare_run(self.bounds(budget)),
            executor=executor or self.plan.executor,
            on_finished=on_finished,
            on_choice=on_choice,
            on_progress=on_progress,
            on_notice=on_notice,
        )
        return self._gone(run)

    def run_by(
        self,
        executor: Executor,
        *,
        bounds: Bounds | None = None,
        on_finished: Callable[[Trial], None] = lambda _: None,
    ) -> str:
        """Go on with an executor that is no plug-in; the reason for stopping is returned.

        Args:
            executor: what evaluates designs.
            bounds: instead of the study's.
            on_finished: told each trial when it is stored.

        Raises:
            StudyError: the study is not what it was begun with, or not trusted.
        """
        self.check_unchanged()
        check_trust(self.storage, self.name)
        run = self._prepare_run(self.bounds() if bounds is None else bounds)
        return self._gone(replace(run, outside=executor, on_finished=on_finished))

    def _prepare_run(self, bounds: Bounds) -> StudyRun:
        return StudyRun(
            plan=self.plan,
            storage=self.storage,
            name=self.name,
            inherited=self.inherited,
            carried=self.carried,
            bounds=bounds,
            executor=self.plan.executor,
            patience_s=self.plan.storage_patience_s,
        )

    def _gone(self, run: StudyRun) -> str:
        try:
            return run.go()
        finally:
            self.plan = run.plan

    def check_unchanged(self) -> None:
        """Nothing, if the evaluators and all else are what the study was begun with.

        Raises:
            StudyError: something is not.
        """
        if self._changed:
            raise StudyError(
                f"the study {self.name!r} was begun with something else: {self._changed}",
                hint="its trials can be read, but new ones would not be comparable",
            )

    def check_runnable(self, kinds: Collection[Kind] = get_args(Kind)) -> None:
        """Nothing, if its evaluators of these kinds can be run here.

        Raises:
            StudyError: one cannot, the study was imported and is not trusted, or something is not
                what it was begun with.
        """
        self.check_unchanged()
        asked = [bound for bound in self.plan.pipeline.bound if bound.evaluator.kind in kinds]
        if "measured" in kinds or not all(bound.pure for bound in asked):
            check_trust(self.storage, self.name)
        for bound in asked:
            missing = getattr(bound.evaluator, "missing", "")
            if missing:
                raise StudyError(
                    f"the study {self.name!r} cannot be run here: {missing}",
                    hint="go on with it in that program; its record can be read anywhere",
                )

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


def _begun(
    storage: Storage, name: str, plan: Plan, carried: Mapping[str, Any] | None, history: History
) -> Mapping[str, Any]:
    """Create a study and return its stored specification.

    Of two processes that begin the study, one creates it.
    """
    begun = {**begun_with(plan), **({"carried": carried} if carried else {})}
    if plan.prior:
        begun["prior"] = _left(plan, storage, whole=not carried).plain()
    try:
        storage.create(name, begun, history)
    except StudyError:
        others = storage.spec(name)
        if others is None:
            raise
        return others
    return begun


def _left(plan: Plan, storage: Storage, *, whole: bool) -> Inherited:
    """Return what a new study inherits from the earlier studies that the file names.

    Without ``whole`` no designs to begin with: the new study begins with others.
    """
    new = StudyLineage.of(plan, plan.identity)
    found = Inherited(studies={})
    for one in plan.prior:
        earlier = StudyEngine.load(one.study, one.storage or storage)
        spec = earlier.storage.spec(one.study) or {}
        old = StudyLineage.of(earlier.plan, identity_of(spec))
        found = found.joined(inherit_from(one.study, new, old, earlier.finished))
    return found if whole else replace(found, designs=())


def check_name(name: str) -> None:
    """Raise StudyError unless a new study may have this name.

    A file from elsewhere may hold any name.

    Raises:
        StudyError: it cannot.
    """
    if not re.fullmatch(NAME, name) or not is_visible(name):
        hint = "letters, digits, '_', '-', '.', spaces: --name NAME"
        raise StudyError(f"{name[:60]!r} is no name", hint=hint)


def unknown_study(name: str, kept: Iterable[str], url: str = "") -> StudyError:
    """Return the error for a study that a storage does not keep."""
    near = nearest(name, kept) or "no study is kept there"
    return StudyError(
        f"there is no study {name!r}{f' in {mask_url(url)}' if url else ''}",
        hint=f"{near}; other storages: --storage URL",
    )


def opened_storage(url: str | Storage, *, begins: bool = False) -> Storage:
    """The storage at a URL: the plug-in is found by the URL's scheme.

    A file that is not there holds no studies; it is made when one ``begins``, not by looking.

    Raises:
        PluginError: no storage has that scheme, or it is the name of a file.
        StorageError: it cannot be opened.
    """
    if not isinstance(url, str | Path):
        return url
    check_storage(str(url))
    url = str(url)
    scheme = url.partition(":")[0].partition("+")[0]
    file = url.partition("///")[2].partition("?")[0]
    named = scheme == "sqlite" and file not in ("", ":memory:")
    if named and not begins and not os.path.exists(file):  # noqa: PTH110 - no error of long names
        scheme, url = "memory", "memory://"
    made: Storage = make("storages", scheme, url)
    return made
