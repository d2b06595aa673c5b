"""Evaluation pipeline: runs the evaluators in dependency order and validates their results."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence, Set
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial, reduce
from graphlib import CycleError, TopologicalSorter
from typing import Any

import numpy as np

from dse.core.batch import Batch, Column
from dse.core.design import Design, key_of
from dse.core.metric import Failure, Metrics
from dse.core.problem import Source
from dse.core.trial import Outcome, State, Trial
from dse.core.values import Floats, Mask
from dse.errors import SpecError
from dse.evaluation.bound_evaluator import Bound
from dse.evaluation.checkpoints import evaluating, keep_outcome, kept_outcome
from dse.evaluation.machine_lock import turn
from dse.evaluation.reporting import Stopped, Watcher, listening, unheard
from dse.protocols import Needs, Task


class Pipeline:
    """Pipeline of all evaluators of a study: maps evaluation tasks (designs) to outcomes."""

    def __init__(self, bound: Sequence[Bound], deciding: frozenset[str] | None = None) -> None:
        """Create a pipeline.

        Args:
            bound: the evaluators.
            deciding: the metrics without which a design counts as failed; the metrics they are
                computed from are added; ``None``: all metrics.
        """
        self.bound = order_evaluators(bound)
        self.sources = _sources(self.bound)
        if deciding is not None:
            every = self._behind(deciding)
            self.bound = tuple(_deciding(one, every) for one in self.bound)
        self.may_start = False  # only commands that run a study let evaluators start programs
        self.on_wait = _unheard
        self.on_report: Watcher = unheard
        self._turns = any(one.exclusive for one in self.bound)

    def _behind(self, asked: frozenset[str]) -> frozenset[str]:
        """Return the given metrics, their summands, and all metrics these are computed from."""
        found = frozenset[str]()
        for one in reversed(self.bound):  # readers of a metric come after its provider
            for own, metric in one.evaluator.provides.items():
                if {one.metric(own), one.metric(metric.part_of)} & (asked | found):
                    found |= {one.metric(own)} | (one.reads_of(own) & self.sources.keys())
        return found

    @property
    def needs(self) -> Needs:
        """Amount of each resource that the evaluators need: the largest need of any of them."""
        return reduce(Needs.joined, (one.needs for one in self.bound))

    def __call__(self, tasks: Sequence[Task]) -> list[Outcome]:
        """Return the outcome of each task; metrics that a task already has are not remeasured.

        An outcome that was saved in the trial's folder, but not yet stored, is reused.
        """
        kept = [kept_outcome(task) for task in tasks]
        rest = [task for task, outcome in zip(tasks, kept, strict=True) if outcome is None]
        found = iter(self._evaluate_tasks(rest) if rest else [])
        return [next(found) if outcome is None else outcome for outcome in kept]

    def _evaluate_tasks(self, tasks: Sequence[Task]) -> list[Outcome]:
        rows = [_Row(task) for task in tasks]
        for rank, bound in enumerate(self.bound):
            todo = [row for row in rows if row.needs(bound, bound.reads & self.sources.keys())]
            groups = [todo] if bound.evaluator.kind == "modelled" else [[row] for row in todo]
            for group in groups:
                if group:
                    self._evaluate(bound, group, rank)
        outcomes = [row.outcome() for row in rows]
        for task, outcome in zip(tasks, outcomes, strict=True):
            keep_outcome(task, outcome)
        return outcomes

    def known(self, batch: Batch) -> Metrics:
        """Return all metrics that need no measurement, by the study's names, each (n,).

        Undefined values are NaN. While ``may_start`` is false, metrics of evaluators that are not
        ``pure``, and metrics that depend on them, are left out. If several evaluators reject a
        design, infeasibility takes precedence over a failure.

        Args:
            batch: n designs.
        """
        columns: dict[str, Floats] = {}
        failures: dict[int, Failure] = {}
        for bound in self.bound:
            sources = [self.sources[name] for name in bound.provides]
            if any(one.kind == "measured" or not (one.pure or self.may_start) for one in sources):
                continue
            got = self._once(bound, batch)
            read = [columns[name] for name in bound.reads if name in columns]
            lost: Mask = np.zeros(len(batch), dtype=bool)
            for values in read:
                lost |= np.isnan(values)
            for row, failure in got.failures.items():
                if row not in failures or (failure.kind == "infeasible" and not lost[row]):
                    failures[row] = failure
            found = {bound.metric(own): values for own, values in got.columns.items()}
            if lost.any() and not bound.reads_apart:
                found = {name: np.where(lost, np.nan, values) for name, values in found.items()}
            columns |= found
            batch = batch.with_columns(
                {name: _build_column(values) for name, values in found.items()}
            )
        return Metrics(columns=columns, failures=failures)

    def _once(self, bound: Bound, batch: Batch) -> Metrics:
        """Evaluate each distinct combination of inputs once; return all designs' metrics."""
        behind = frozenset[str]().union(*(self.sources[name].reads for name in bound.provides))
        among = batch.distinct(behind)
        if among.place is None:
            return bound.evaluate(batch)
        got = bound.evaluate(batch.take(among.rows))
        return Metrics(
            columns={name: among.spread(values) for name, values in got.columns.items()},
            failures=among.spread_rows(got.failures),
        )

    def _evaluate(self, bound: Bound, rows: Sequence[_Row], rank: int) -> None:
        rows = [row for row in rows if row.can(bound)]
        if not rows:
            return
        batch = Batch.of([row.known() for row in rows])
        with self._turn(bound), self._place(bound, rows, rank):
            started = time.perf_counter()
            got = self._evaluate_reporting(bound, batch, rows)
            seconds = (time.perf_counter() - started) / len(rows)
        for place, row in enumerate(rows):
            row.cost_s += seconds
            row.measured += bound.evaluator.kind == "measured"
            row.judge(got.failures.get(place))
            if row.failure is None:
                for own, values in got.columns.items():
                    row.metrics[bound.metric(own)] = float(values[place])
                for own, values in got.spread.items():
                    if np.isfinite(values[place]):  # the standard error may be unknown
                        row.spread[bound.metric(own)] = float(values[place])

    def _evaluate_reporting(self, bound: Bound, batch: Batch, rows: Sequence[_Row]) -> Metrics:
        """Evaluate designs while listening to reports; no metrics if a trial was stopped early.

        Only the evaluation of a single design can send reports.
        """
        if len(rows) > 1:
            return bound.evaluate(batch)
        try:
            with listening(partial(self._hear, bound, rows[0])):
                return bound.evaluate(batch)
        except Stopped:
            rows[0].stopped = True
            return Metrics(columns={})

    def _hear(self, bound: Bound, row: _Row, step: int, metrics: Mapping[str, float]) -> bool:
        row.reported = {bound.metric(own): value for own, value in metrics.items()}
        return self.on_report(row.number, step, {**row.metrics, **row.reported})

    def _place(self, bound: Bound, rows: Sequence[_Row], rank: int) -> AbstractContextManager[None]:
        """Return a context in which :func:`current_trial` works; empty for a modelled evaluator."""
        if bound.evaluator.kind == "modelled":
            return nullcontext()
        return evaluating(rows[0].task, rank)

    def _turn(self, bound: Bound) -> AbstractContextManager[None]:
        """Return the machine lock for a measurement, exclusive or shared; empty for a model."""
        if not self._turns or bound.evaluator.kind == "modelled":
            return nullcontext()
        return turn(alone=bound.exclusive, on_wait=self.on_wait)


class MeasurementCache:
    """Cache of measured results by evaluator and inputs, so that nothing is measured twice."""

    def __init__(self, pipeline: Pipeline) -> None:
        self._sources = pipeline.sources
        self._measured = [b for b in pipeline.bound if b.evaluator.kind == "measured"]
        self._known: dict[tuple[str, str], tuple[dict[str, float], dict[str, float]]] = {}

    @property
    def measured(self) -> bool:
        """Whether the study has a measured evaluator."""
        return bool(self._measured)

    def learn(self, trial: Trial) -> None:
        """Add the measurements of a trial to the cache; ignore a trial that was stopped early."""
        if trial.state is State.STOPPED:
            return
        for bound in self._measured:
            if bound.answered(trial):
                metrics = {name: trial.metrics.get(name, np.nan) for name in bound.provides}
                spread = {n: trial.spread[n] for n in bound.provides if n in trial.spread}
                self._known.setdefault(self._key(bound, trial.design), (metrics, spread))

    def task(self, trial: Trial) -> Task:
        """Return the evaluation task of a trial, with the cached measurements of its design."""
        metrics: dict[str, float] = {}
        spread: dict[str, float] = {}
        for bound in self._measured:
            known = self._known.get(self._key(bound, trial.design))
            if known is not None:
                metrics |= known[0]
                spread |= known[1]
        return Task(number=trial.number, design=trial.design, given=metrics, spread=spread)

    def _key(self, bound: Bound, design: Design) -> tuple[str, str]:
        reads = frozenset[str]().union(*(self._sources[m].reads for m in bound.provides))
        return bound.label, key_of({name: design[name] for name in reads if name in design})


class _Row:
    """Evaluation state of one task (design): its metrics, failure and cost so far."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self.design = task.design
        self.metrics = dict(task.given)
        self.spread = dict(task.spread)
        self.only = task.only
        self.skipped = False
        self.stopped = False
        self.reported: dict[str, float] = {}
        self.number = task.number
        self.failure: Failure | None = None
        self.cost_s = 0.0
        self.measured = 0

    def needs(self, bound: Bound, read: Set[str]) -> bool:
        """Return whether this task still needs the evaluator, whose input metrics are ``read``."""
        if self.failure is not None:
            return self._may_be_impossible(bound, read)
        if self.stopped or bound.provides.keys() <= self.metrics.keys():
            return False
        wanted = self.only is None or bound.label in self.only
        self.skipped |= not wanted
        return wanted

    def _may_be_impossible(self, bound: Bound, read: Set[str]) -> bool:
        """Return whether to run this model after a failure: the design may be infeasible.

        The model must not read metrics of the failed evaluator.
        """
        assert self.failure is not None
        free = bound.evaluator.kind == "modelled" and read <= self._select_finite().keys()
        return free and self.only is None and self.failure.kind != "infeasible"

    def judge(self, failure: Failure | None) -> None:
        """Record a failure of the design; infeasibility replaces any other failure."""
        if self.failure is None or (failure is not None and failure.kind == "infeasible"):
            self.failure = failure

    def can(self, bound: Bound) -> bool:
        """Return whether all inputs of the evaluator are defined; else set its metrics to NaN."""
        if not any(np.isnan(self.metrics.get(n, 0.0)) for n in bound.reads) or bound.reads_apart:
            return True
        self.metrics |= dict.fromkeys(bound.provides, np.nan)
        return False

    def known(self) -> dict[str, Any]:
        return {**self.design, **self._select_finite()}

    def _select_finite(self) -> dict[str, float]:
        return {name: value for name, value in self.metrics.items() if np.isfinite(value)}

    def outcome(self) -> Outcome:
        state = State.SCREENED if self.skipped else State.DONE
        if self.stopped:
            state, self.metrics = State.STOPPED, {**self.metrics, **self.reported}
        if self.failure is not None:
            state = State.INFEASIBLE if self.failure.kind == "infeasible" else State.FAILED
        return Outcome(
            state=state,
            metrics=self._select_finite(),
            spread=self.spread,
            failure=self.failure,
            cost_s=self.cost_s,
            measured=self.measured,
        )


def _deciding(bound: Bound, metrics: frozenset[str]) -> Bound:
    """Return the evaluator with only the metrics in ``metrics`` declared as deciding metrics.

    A design without a deciding metric counts as failed.
    """
    own = frozenset(own for own in bound.evaluator.provides if bound.metric(own) in metrics)
    return replace(bound, deciding=own)


def _build_column(values: Floats) -> Column:
    """Return a metric of n designs as a column, absent where the metric is undefined."""
    gone = np.isnan(values)
    return Column(values, gone) if gone.any() else Column(values)


def order_evaluators(bound: Sequence[Bound]) -> tuple[Bound, ...]:
    """Return the evaluators in topological order, with models before measurements if possible.

    A design that a model finds infeasible is then not measured.

    Raises:
        SpecError: two evaluators provide the same metric, or their dependencies form a cycle.
    """
    by_metric: dict[str, Bound] = {}
    for one in bound:
        for metric in one.provides:
            if metric in by_metric:
                other = by_metric[metric].label
                raise SpecError(f"both {other} and {one.label} provide {metric!r}")
            by_metric[metric] = one
    by_label = {one.label: one for one in bound}
    sorter = TopologicalSorter(
        {one.label: {by_metric[r].label for r in one.reads if r in by_metric} for one in bound}
    )
    try:
        sorter.prepare()
    except CycleError as error:
        circle = " -> ".join(reversed(error.args[1]))
        raise SpecError(f"the dependencies of these evaluators form a cycle: {circle}") from error
    order: list[Bound] = []
    ready: list[str] = []
    while sorter.is_active():
        ready += sorter.get_ready()
        ready.sort(key=lambda label: (by_label[label].evaluator.kind != "modelled", label))
        order.append(by_label[ready[0]])
        sorter.done(ready.pop(0))
    return tuple(order)


def _sources(bound: Sequence[Bound]) -> dict[str, Source]:
    """Return, by metric, its kind and the parameters that it depends on, also indirectly."""
    sources: dict[str, Source] = {}
    for one in bound:
        earlier = [sources[name] for name in one.reads if name in sources]
        reads = frozenset(name for name in one.reads if name not in sources)
        reads = reads.union(*(source.reads for source in earlier))
        measured = one.evaluator.kind == "measured" or any(s.kind == "measured" for s in earlier)
        pure = one.pure and all(source.pure for source in earlier)
        for name, metric in one.provides.items():
            sources[name] = Source(
                metric=metric,
                kind="measured" if measured else "modelled",
                reads=reads,
                pure=pure,
                separable=one.separable.get(metric.name) if measured else None,
            )
    return sources


def _unheard(_: str) -> None:
    """Ignore a notice that a measurement waits for the machine lock."""
