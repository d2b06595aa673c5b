"""Study engine: creates, loads and runs studies for the Python API and the command line."""

from __future__ import annotations

import shlex
import threading
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

from dse.core.judged_trials import JudgedTrial
from dse.core.metric import Kind
from dse.core.recorded_gap import RecordedGap
from dse.core.trial import History, Trial
from dse.errors import StudyError
from dse.evaluation.recorded_weights import weights_of_study
from dse.protocols import NEW, Executor, Storage, missing_reason
from dse.schema.history import recorded_specification as recorded
from dse.schema.history.earlier_studies import inherit_from
from dse.schema.history.lineage import StudyLineage
from dse.schema.history.recorded_specification import Inherited, difference
from dse.schema.models import PluginSpec
from dse.schema.study.budget import Budget
from dse.schema.study.plan import Plan, plan_of
from dse.schema.study.plugin_checks import is_python_optimizer, missing_optimizer
from dse.schema.yaml.source import shown
from dse.storage.trust import check_trust
from dse.study.front_judging import FrontJudge, check_test_split
from dse.study.library_members import inherit_libraries
from dse.study.recorded_study import RecordedStudy
from dse.study.run_phases import StudyRun
from dse.study.stopping_bounds import Bounds, bounds_of
from dse.study.storage_access import (
    DEFAULT_STORAGE,
    check_name,
    create_study,
    opened_storage,
    unknown_study,
)
from dse.system.credentials import private_environment


class StudyEngine(RecordedStudy):
    """Named study that can be run: a plan (problem, optimizer, budget) with its record.

    Construct it with :meth:`open`, :meth:`of` or :meth:`load`.
    """

    def __init__(self, plan: Plan, storage: Storage, name: str, *, changed: str = "") -> None:
        super().__init__(plan, storage, name)
        self._changed = changed
        self._stops: set[threading.Event] = set()
        self.latest_gap: RecordedGap | None = None  # of this object's runs, for displays

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
        """Return the study that a file describes: created now, or resumed if it exists.

        Args:
            path: the study file.
            name: the study's name, instead of the file's ``study:``.
            storage: a storage or its URL, instead of the file's ``storage:``.
            seed: the seed, instead of the file's.
            optimizer: the optimizer, instead of the file's.
            carried: for a study that begins with another study's trials: their number
                (``trials``) and that study's name (``from``).
            history: the trials and events that a new study begins with.

        Raises:
            SpecErrors: the file has mistakes.
            StudyError: a study of this name exists and has a different specification.
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
        """Return the study that a plan describes: created now, or resumed if it exists.

        Args:
            plan: the plan.
            name: the study's name, instead of the plan's.
            storage: a storage or its URL, instead of the plan's.
            carried: for a study that begins with another study's trials: their number
                (``trials``) and that study's name (``from``).
            history: the trials and events that a new study begins with.
            where: the location that error messages refer to.
            hint: how to resolve that a different study has this name.

        Raises:
            StudyError: a study of this name exists and has a different specification.
        """
        opened = opened_storage(storage or plan.storage or DEFAULT_STORAGE, begins=True)
        name = plan.name if name is None else name
        check_name(name)
        stored = opened.spec(name) or _begun(opened, name, plan, carried, history)
        with recorded.reading_record(name):
            changed = difference(recorded.identity_of(stored), recorded.plain(plan.identity))
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
        """Return a stored study by name, rebuilt from its own record.

        Args:
            name: the study's name.
            storage: a storage or its URL.
            objects: Python objects, by name, of a study defined in Python; without them such a
                study can be read but not run.

        Raises:
            StudyError: there is no such study, or its record has no valid specification.
        """
        url = storage or DEFAULT_STORAGE
        opened = opened_storage(url)
        spec = opened.spec(name)
        if spec is None:
            raise unknown_study(name, opened.studies(), url if isinstance(url, str) else "")
        with recorded.reading_record(name):
            plan = recorded.kept_plan(spec, objects)
            changed = difference(recorded.identity_of(spec), recorded.plain(plan.identity))
        return StudyEngine(plan, opened, name, changed=changed)

    def run(
        self,
        *,
        budget: Budget | None = None,
        executor: PluginSpec | None = None,
        on_finished: Callable[[Trial], None] | None = None,
        on_choice: Callable[[str], None] = lambda _: None,
        on_progress: Callable[[int, int], None] = lambda *_: None,
        on_notice: Callable[[str], None] = lambda _: None,
    ) -> str:
        """Run the study until the budget is used up; return the reason for stopping.

        Args:
            budget: the budget, instead of the study's.
            executor: the executor, instead of the study's.
            on_finished: called with each trial when it is stored.
            on_choice: called with a description of the optimizer that ``auto`` chose.
            on_progress: called with (done, total) during an optimizer's long step.
            on_notice: called with a message when the storage becomes unavailable or returns.

        Raises:
            OutageError: the storage was unavailable for longer than the study waits; the study can
                be resumed.
            StudyError: an evaluator differs from the one with which the study was begun, or cannot
                run here.
        """
        self.check_runnable()
        stop = threading.Event()
        run = replace(
            self._prepare_run(self.bounds(budget)),
            executor=executor or self.plan.executor,
            on_finished=on_finished,
            on_choice=on_choice,
            on_progress=on_progress,
            on_notice=on_notice,
            is_stopped=stop.is_set,
        )
        self._stops.add(stop)
        try:
            return self._gone(run)
        finally:
            self._stops.discard(stop)

    def judge(
        self,
        *,
        again: bool = False,
        on_judged: Callable[[int, int], None] = lambda *_: None,
    ) -> list[JudgedTrial]:
        """Measure the front on the test split of the evaluators; return the new results.

        Trials that have a result are left out, except for those whose measurement failed.

        Args:
            again: measure all trials of the front anew.
            on_judged: called with (done, total) after each result.

        Raises:
            StudyError: no evaluator has a test split, an evaluator differs from the one with which
                the study was begun, or the study cannot run here.
        """
        self.check_runnable()
        check_test_split(self.plan)
        judge = FrontJudge(
            plan=self.plan,
            storage=self.storage,
            name=self.name,
            make_executor=self._prepare_run(self.bounds()).executor_of,
            on_judged=on_judged,
        )
        with private_environment():
            return judge.measure(judge.missing(again=again, failed=True))

    def stop(self) -> bool:
        """End the runs of this object after their present evaluations; return whether any is on.

        No further design is requested and no evaluation begins. Threads and callbacks may call it.
        """
        stops = list(self._stops)
        for stop in stops:
            stop.set()
        return bool(stops)

    def run_by(
        self,
        executor: Executor,
        *,
        bounds: Bounds | None = None,
        on_finished: Callable[[Trial], None] | None = None,
    ) -> str:
        """Run the study with an executor object that is not a plug-in; return why it stopped.

        Args:
            executor: the executor that evaluates designs.
            bounds: the limits at which to stop, instead of those of the study's budget.
            on_finished: called with each trial when it is stored.

        Raises:
            StudyError: the study differs from what it was begun with, or is not trusted.
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
            carried=self.carried + self.attached,
            bounds=bounds,
            executor=self.plan.executor,
            patience_s=self.plan.storage_patience_s,
            on_gap=self._note_gap,
        )

    def _note_gap(self, gap: RecordedGap) -> None:
        self.latest_gap = gap

    def _gone(self, run: StudyRun) -> str:
        try:
            return run.go()
        finally:
            self.plan = run.plan

    def check_unchanged(self) -> None:
        """Check that evaluators and specification are those with which the study was created.

        Raises:
            StudyError: something differs.
        """
        if self._changed:
            raise StudyError(
                f"the study {self.name!r} differs from what it was begun with: {self._changed}",
                hint="its trials can be read, but new ones would not be comparable",
            )

    def check_runnable(self, kinds: Collection[Kind] = get_args(Kind)) -> None:
        """Check that the study's evaluators of some kinds can run here.

        Args:
            kinds: the kinds of evaluators to check; by default all.

        Raises:
            StudyError: an evaluator cannot run here, the optimizer is defined in a program that did
                not pass it, the study was imported and is not trusted, or it differs from what it
                was begun with.
        """
        self.check_unchanged()
        use = self.plan.optimizer.use
        if is_python_optimizer(use) and use not in self.plan.objects:
            raise missing_optimizer(use)
        asked = [bound for bound in self.plan.pipeline.bound if bound.evaluator.kind in kinds]
        if "measured" in kinds or not all(bound.pure for bound in asked):
            check_trust(self.storage, self.name)
        for bound in asked:
            missing = missing_reason(bound.evaluator)
            if missing:
                raise StudyError(
                    f"the study {self.name!r} cannot be run here: {missing}",
                    hint="resume it in its own program; its record can be read anywhere",
                )

    def bounds(self, budget: Budget | None = None) -> Bounds:
        """Return the limits of a budget (by default the study's own), so that every study ends.

        See :func:`~dse.study.stopping_bounds.bounds_of` for the limits that a budget leaves open.
        """
        return bounds_of(self.plan, budget or self.plan.budget, self.carried + self.attached)


def _begun(
    storage: Storage, name: str, plan: Plan, carried: Mapping[str, Any] | None, history: History
) -> Mapping[str, Any]:
    """Create a study, unless another process creates it first; return the stored specification."""
    begun = {**recorded.begun_with(plan), **({"carried": carried} if carried else {})}
    if plan.transfer_from:
        begun["prior"] = _left(plan, storage, whole=not carried).plain()
    return create_study(storage, name, begun, history)


def _left(plan: Plan, storage: Storage, *, whole: bool) -> Inherited:
    """Return what a new study takes over from the earlier studies and libraries of its file.

    If ``whole`` is false, it takes over no initial designs, because it begins with carried trials.
    """
    new = StudyLineage.of(plan, plan.identity)
    found = inherit_libraries(plan.libraries, plan.problem)
    for one in plan.transfer_from:
        if one.study is None:
            continue
        earlier = StudyEngine.load(one.study, one.storage or storage)
        spec = earlier.storage.spec(one.study) or {}
        weights = weights_of_study(earlier.storage, one.study)
        old = StudyLineage.of(earlier.plan, recorded.identity_of(spec), weights)
        found = found.joined(inherit_from(one.study, new, old, earlier.finished))
    return found if whole else replace(found, designs=())
