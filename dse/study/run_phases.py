"""One driver's run of a study: baselines, main optimizer, then designs without measurements."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace

from dse.core.proof import SEARCHED
from dse.core.recorded_gap import RecordedGap
from dse.core.trial import Event, Trial
from dse.evaluation.pipeline import MeasurementCache, Pipeline
from dse.evaluation.provenance import provenance
from dse.evaluation.recorded_weights import check_weights, hash_weights, read_weights
from dse.optimizers.auto import executor_for, needs_cost, optimizer_for
from dse.optimizers.bayesian.front_completion import worthwhile
from dse.protocols import (
    AdjustsEffort,
    EndedByCaller,
    Executor,
    ExpectsImprovement,
    Optimizer,
    ReportsIntermediate,
    ReportsProgress,
    Storage,
    traits_of,
)
from dse.registry import load, make, options_of
from dse.schema.history.recorded_specification import Inherited
from dse.schema.models import PluginSpec
from dse.schema.study.budget import CONFIDENCE
from dse.schema.study.measured_baselines import check_baselines, settle_baselines
from dse.schema.study.plan import Plan
from dse.schema.study.plugin_checks import AUTO, build_early_stopping_error, optimizer_traits
from dse.schema.study.run_sections import thinking_of
from dse.storage.patience import PATIENCE_S
from dse.storage.retrying import RetryingStorage, retry_calls
from dse.study.claimed_trials import LEASE_S, Lease
from dse.study.early_stop_watch import EarlyStopMonitor
from dse.study.front_judging import FrontJudge, is_judged
from dse.study.gap_stopping import GapMonitor
from dse.study.history import TrialHistory
from dse.study.loop import STOPPED, Loop
from dse.study.proposers import (
    COMPLETION,
    FIRST,
    NOBODY,
    find_auto_choice,
    list_given_designs,
    scenario,
    suggesting,
)
from dse.study.recovery import store_spools
from dse.study.scenario_optimizer import for_free
from dse.study.stopping_bounds import Bounds
from dse.study.thinking import ThinkingControl, effort_changes
from dse.system.credentials import private_environment
from dse.system.swallowed_interrupts import interrupts_cleared


@dataclass(kw_only=True)
class StudyRun:
    """Run of a study by one process.

    Args:
        plan: the study's plan; once its baselines are measured, a plan with their values replaces
            it.
        storage: the storage of the study's record.
        name: the study's name in the storage.
        inherited: designs, priors and measurements from earlier studies.
        carried: number of trials that came from other studies and do not count for the budget.
        bounds: when to stop.
        executor: the executor plug-in that runs evaluations.
        outside: an executor object to use instead; phases without measurements still run in this
            process.
        lease_s: seconds without a heartbeat after which a driver is lost.
        on_finished: called with each trial when it is stored, whichever driver ran it.
        on_choice: called with a description of the optimizer that ``auto`` chose.
        on_progress: called with (done, total) during an optimizer's long step.
        patience_s: seconds to wait for an unavailable storage.
        on_notice: called with a message when the storage becomes unavailable or returns.
        on_gap: called with each estimate of the gap, if the budget has one.
        is_stopped: returns whether to begin no further evaluation and end the run.
    """

    plan: Plan
    storage: Storage
    name: str
    inherited: Inherited
    carried: int
    bounds: Bounds
    executor: PluginSpec
    outside: Executor | None = None
    lease_s: float = LEASE_S
    on_finished: Callable[[Trial], None] | None = None
    on_choice: Callable[[str], None] = lambda _: None
    on_progress: Callable[[int, int], None] = lambda *_: None
    patience_s: float = PATIENCE_S
    on_notice: Callable[[str], None] = lambda _: None
    on_gap: Callable[[RecordedGap], None] = lambda _: None
    is_stopped: Callable[[], bool] = lambda: False
    _retrying: RetryingStorage = field(init=False)
    _history: TrialHistory = field(init=False)
    _lease: Lease = field(init=False)

    def go(self) -> str:
        """Run until the budget is used up; return the reason for stopping."""
        with private_environment(), self._enter_study(), interrupts_cleared():
            for event in self._events():
                if event.kind == "choice":
                    self.on_choice(event.text)
            if self.plan.transfer_from:
                self._note(Event(kind="prior", text=self.inherited.words()))
            self._measure_baselines()
            use = self._resolve_optimizer()
            if self.is_stopped():
                return STOPPED
            optimizer = suggesting(self.plan, use)
            if isinstance(optimizer, ReportsProgress):
                optimizer.on_progress = self.on_progress
            self._note_unsupported(optimizer, use)
            reason = self._loop(optimizer, use, self.bounds, thinking=self._thinking(optimizer))
            if reason != STOPPED:
                self._add_what_is_free()
                self._judge_front()
        return reason

    def _note_unsupported(self, optimizer: Optimizer, use: str) -> None:
        """Record which settings of the study the optimizer does not support."""
        expects = isinstance(optimizer, ExpectsImprovement)
        if self.bounds.min_improvement is not None and not expects:
            text = "the optimizer expects no improvement: 'min_improvement' is no bound"
            self._note(Event(kind="gain", text=text))
        if self.plan.libraries and not traits_of(optimizer).learns_from_library:
            text = f"the optimizer {use} does not learn from the library of studies"
            self._note(Event(kind="library", text=text))

    @contextmanager
    def _enter_study(self) -> Iterator[None]:
        """Register as a driver of the study for the duration of the block, and read its record."""
        self.plan.pipeline.may_start = True
        facts = provenance(self.plan.path.parent, self.plan.identity["evaluators"])
        facts |= hash_weights(one.evaluator for one in self.plan.pipeline.bound)
        self._retrying = retry_calls(
            self.storage, patience_s=self.patience_s, on_notice=self.on_notice
        )
        with Lease(
            self._retrying, self.name, provenance=facts, lease_s=self.lease_s
        ) as self._lease:
            self._check_weights()
            self._history = TrialHistory(self._retrying, self.name)
            self._history.read()
            stored = store_spools(self._history, self.plan.retries)
            if stored:
                self.on_notice(f"stored {stored} outcomes that could not be stored before")
            yield

    def _check_weights(self) -> None:
        """Raise StudyError if a model's weights differ from those with which the study began."""
        drivers = sorted(self._retrying.drivers(self.name), key=lambda one: one.id)
        here = read_weights([one for one in drivers if one.id == self._lease.id], None)
        if here:
            began = read_weights(drivers, self._retrying.spec(self.name))
            check_weights(self.name, began, here, place="here")

    def _measure_baselines(self) -> None:
        """Measure the baselines to which objectives are relative.

        Their values then replace the references to them in the plan.
        """
        if self.plan.awaited:
            most = self.carried + len(self.plan.problem.baselines)
            trials = most if self.bounds.trials is None else min(most, self.bounds.trials)
            bounds = replace(self.bounds, trials=trials)
            self._loop(suggesting(self.plan, NOBODY), NOBODY, bounds, below=trials)
            if self.is_stopped():
                return
            self.plan = settle_baselines(self.plan, self._history.trials)
            check_baselines(self.plan, self._history.trials)

    def _resolve_optimizer(self) -> str:
        """Return the optimizer's name: the study's, or what ``auto`` has chosen or chooses now.

        It is empty if the run is stopped before ``auto`` can choose.
        Several drivers may choose at the same time: the first recorded choice holds for all.
        """
        use = self.plan.optimizer.use
        if use != AUTO:
            return use
        if self.is_stopped():
            return ""
        if not find_auto_choice(self._events()):
            problem = self.plan.problem
            if needs_cost(problem):
                most = self.carried + 1
                bounds = replace(self.bounds, trials=most)
                self._loop(suggesting(self.plan, FIRST), FIRST, bounds, below=most)
                if self.is_stopped():
                    return ""
            choice = optimizer_for(
                problem,
                self.bounds.measurements,
                self._cost_s(),
                thinking=thinking_of(self.plan.optimizer),
            )
            if not find_auto_choice(self._events()):
                event = Event(kind="choice", text=f"{choice.use}: {choice.reason}")
                self._retrying.record(self.name, [event])
            self.on_choice(next(e.text for e in self._events() if e.kind == "choice"))
        return find_auto_choice(self._events())

    def _thinking(self, optimizer: Optimizer) -> ThinkingControl | None:
        """Return the control of the optimizer's effort, if the study has the option ``thinking``.

        An optimizer with a single level of effort, which ``auto`` may choose, needs none.
        """
        share = thinking_of(self.plan.optimizer)
        if share is None or not isinstance(optimizer, AdjustsEffort):
            return None
        control = ThinkingControl(optimizer=optimizer, share=share)
        control.resume(effort_changes(self._events()))
        return control

    def _cost_s(self) -> float | None:
        """Return the cost in seconds of the study's first own trial; ``None`` until it finished.

        Trials carried over from another study are skipped, because they cost nothing.
        """
        trials = self._history.trials[self.carried : self.carried + 1]
        return trials[0].cost_s if trials and trials[0].state.finished else None

    def _add_what_is_free(self) -> None:
        """Add designs whose metrics follow from existing measurements, for each scenario, too."""
        if completes_front(self.plan):
            self._loop_here(COMPLETION)
        exact = any(event.kind in SEARCHED for event in self._events())
        for name, problem in self.plan.alone.items():
            if for_free(problem, exact=exact) is not None:
                self._loop_here(scenario(name))

    def _judge_front(self) -> None:
        """Measure the front on the test split, if the study has one, with the study's executor."""
        if self.outside is not None or not is_judged(self.plan):
            return
        judge = FrontJudge(
            plan=self.plan,
            storage=self._retrying,
            name=self.name,
            make_executor=self.executor_of,
            is_stopped=self.is_stopped,
            lease=self._lease,
        )
        judge.measure(judge.missing())

    def executor_of(self, pipeline: Pipeline) -> Executor:
        """Return the study's executor for a different pipeline of evaluators."""
        return self._make_executor(self.executor, None, pipeline)

    def _loop_here(self, by: str) -> None:
        """Run a loop of designs without measurements, in this process, waiting for no driver."""
        optimizer = suggesting(self.plan, by)
        batch = traits_of(optimizer).batch
        here = PluginSpec(use="serial", batch=batch)  # type: ignore[call-arg]
        self._loop(optimizer, by, Bounds(), here)

    def _loop(
        self,
        optimizer: Optimizer,
        by: str,
        bounds: Bounds,
        here: PluginSpec | None = None,
        below: int | None = None,
        thinking: ThinkingControl | None = None,
    ) -> str:
        if self.outside is None or here is not None:
            runner = self._make_executor(here or self.executor, optimizer)
        else:
            runner = self.outside
        self._watch_reports(runner)
        readings = MeasurementCache(self.plan.pipeline)
        for reading in self.inherited.readings:
            readings.learn(reading.trial())
        with closing(runner):
            return Loop(
                space=self.plan.problem.space,
                history=self._history,
                lease=self._lease,
                optimizer=optimizer,
                by=by,
                executor=runner,
                readings=readings,
                stages=self.plan.stages,
                retries=self.plan.retries,
                bounds=bounds,
                first=list_given_designs(self.plan, self.inherited),
                lingers=here is None,
                drains=runner is not self.outside,  # an external executor may block on its caller
                below=below,
                gap=self._watch_gap(bounds) if here is None and below is None else None,
                thinking=thinking,
                is_stopped=self.is_stopped,
                on_finished=self.on_finished,
                set_aside=self._retrying.set_aside,
            ).run()

    def _watch_gap(self, bounds: Bounds) -> GapMonitor | None:
        """Return the stopping rule of a budget with a gap; ``None`` without one."""
        if bounds.gap is None:
            return None
        return GapMonitor(
            problem=self.plan.problem,
            share=bounds.gap,
            confidence=CONFIDENCE if bounds.confidence is None else bounds.confidence,
            completes=completes_front(self.plan),
            on_estimate=self.on_gap,
        )

    def _watch_reports(self, runner: Executor) -> None:
        """Let the early-stopping rule decide on the executor's intermediate reports.

        Raises:
            SpecError: there is a rule, but the executor passes on no reports.
        """
        if isinstance(runner, ReportsIntermediate):
            runner.on_report = EarlyStopMonitor(
                history=self._history,
                problem=self.plan.problem,
                rule=self.plan.early_stopping,
                worker=self._lease.id,
            )
        elif self.plan.early_stopping is not None:
            asked = isinstance(runner, EndedByCaller)
            words = "ask() and tell()" if asked else f"the executor {type(runner).__name__}"
            with closing(runner):
                raise build_early_stopping_error(words).at(str(self.plan.path))

    def _make_executor(
        self, spec: PluginSpec, optimizer: Optimizer | None, pipeline: Pipeline | None = None
    ) -> Executor:
        use, options = spec.use, spec.options
        if use == AUTO:
            use = executor_for(self.plan.problem).use
            if use == "processes":
                options = {"workers": 1, **options}
        if optimizer is not None and use == "serial" and not self.plan.problem.measured:
            options = {"batch": traits_of(optimizer).batch, **options}
        known = options_of(load("executors", use))
        if spec.use == AUTO:
            options = {key: value for key, value in options.items() if key in known}
        made: Executor = make("executors", use, pipeline or self.plan.pipeline, **options)
        return made

    def _events(self) -> list[Event]:
        return self._retrying.events(self.name)

    def _note(self, event: Event) -> None:
        """Record the event unless the record contains an equal event already."""
        if (event.kind, event.text) not in {(e.kind, e.text) for e in self._events()}:
            self._retrying.record(self.name, [event])


def completes_front(plan: Plan) -> bool:
    """Return whether designs that need no measurement complete the front after a run."""
    chosen = plan.optimizer
    completed = chosen.use == AUTO or optimizer_traits(chosen, plan.objects).completes_front
    return completed and worthwhile(plan.problem)
