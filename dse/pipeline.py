"""Evaluators in dependency order, each shown only what it reads, each answer checked."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import partial, reduce
from graphlib import CycleError, TopologicalSorter
from typing import Any

import numpy as np

from dse.core.batch import Batch, Column
from dse.core.design import Design, key_of
from dse.core.metric import Fault, FaultKind, Metric, Metrics
from dse.core.problem import Source
from dse.core.trial import Outcome, State, Trial
from dse.core.values import Floats
from dse.early import Stopped, Watcher, listening, unheard
from dse.errors import InfeasibleError, SpecError
from dse.protocols import Evaluator, Needs, Task
from dse.turns import turn


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """An evaluator in a study: its name there, and what each of its readings is there.

    ``names`` maps the evaluator's word for a reading to the study's; ``factors`` holds what a
    reading is multiplied with to be in the evaluator's unit. One that tells another number under
    another scenario is there once for each. ``needs`` is what it wants of its machine; one that is
    ``exclusive`` wants it for itself.
    """

    name: str
    evaluator: Evaluator
    names: Mapping[str, str]
    factors: Mapping[str, float] = field(default_factory=dict)
    scenario: str = ""
    needs: Needs = field(default_factory=Needs)
    exclusive: bool = False

    @property
    def label(self) -> str:
        """Its name, with the scenario that it is for: ``chip@chat``."""
        return f"{self.name}@{self.scenario}" if self.scenario else self.name

    def metric(self, own: str) -> str:
        """The study's word for a metric of its own: ``chip.latency``, ``chip.latency@chat``."""
        full = f"{self.name}.{own}"
        return f"{full}@{self.scenario}" if self.scenario else full

    @property
    def reads(self) -> frozenset[str]:
        """What it reads, in the study's words."""
        return frozenset(self.names.values())

    @property
    def provides(self) -> dict[str, Metric]:
        """Its metrics, in the study's words."""
        return {self.metric(own): metric for own, metric in self.evaluator.provides.items()}

    def evaluate(self, batch: Batch) -> Metrics:
        """The metrics of the batch under the evaluator's own names; never raises."""
        view = self._view(batch)
        try:
            return _checked(self.evaluator.evaluate(view), self.evaluator.provides, len(batch))
        except Exception as error:  # noqa: BLE001 - whatever an evaluator raises costs its rows only
            if len(batch) == 1:
                return Metrics(columns={}, faults={0: _fault(error)})
        parts = [self.evaluate(batch.take(np.array([row]))) for row in range(len(batch))]
        return _stacked(parts, self.evaluator.provides)

    def _view(self, batch: Batch) -> Batch:
        view = batch.renamed(self.names)
        scaled = {
            own: _scaled(view.columns[own], factor)
            for own, factor in self.factors.items()
            if own in view and factor != 1.0
        }
        return view.with_columns(scaled) if scaled else view


class Pipeline:
    """All evaluators of a study; turns tasks into outcomes, wherever it is called."""

    def __init__(self, bound: Sequence[Bound]) -> None:
        self.bound = ordered(bound)
        self.sources = _sources(self.bound)
        self.on_wait = _unheard
        self.on_report: Watcher = unheard
        self._turns = any(one.exclusive for one in self.bound)

    @property
    def needs(self) -> Needs:
        """The most of each thing that one of its evaluators needs: they run one by one."""
        return reduce(Needs.joined, (one.needs for one in self.bound))

    def __call__(self, tasks: Sequence[Task]) -> list[Outcome]:
        """The outcome of each task; metrics that a task brings along are not measured again."""
        rows = [_Row(task) for task in tasks]
        for bound in self.bound:
            todo = [row for row in rows if row.needs(bound)]
            groups = [todo] if bound.evaluator.kind == "modelled" else [[row] for row in todo]
            for group in groups:
                if group:
                    self._evaluate(bound, group)
        return [row.outcome() for row in rows]

    def known(self, batch: Batch) -> Metrics:
        """Every metric that needs no measurement, under the study's names."""
        columns: dict[str, Floats] = {}
        faults: dict[int, Fault] = {}
        for bound in self.bound:
            if any(self.sources[name].kind == "measured" for name in bound.provides):
                continue
            got = self._once(bound, batch)
            faults = {**got.faults, **faults}
            found = {bound.metric(own): values for own, values in got.columns.items()}
            columns |= found
            batch = batch.with_columns({name: Column(values) for name, values in found.items()})
        return Metrics(columns=columns, faults=faults)

    def _once(self, bound: Bound, batch: Batch) -> Metrics:
        """What it says, asked once for rows that agree in all parameters behind what it reads."""
        behind = frozenset[str]().union(*(self.sources[name].reads for name in bound.provides))
        among = batch.distinct(behind)
        if among.place is None:
            return bound.evaluate(batch)
        got = bound.evaluate(batch.take(among.rows))
        return Metrics(
            columns={name: among.spread(values) for name, values in got.columns.items()},
            faults=among.spread_rows(got.faults),
        )

    def _evaluate(self, bound: Bound, rows: Sequence[_Row]) -> None:
        batch = Batch.of([row.known() for row in rows])
        with self._turn(bound):
            started = time.perf_counter()
            got = self._told(bound, batch, rows)
            seconds = (time.perf_counter() - started) / len(rows)
        for place, row in enumerate(rows):
            row.cost_s += seconds
            row.measured += bound.evaluator.kind == "measured"
            row.fault = got.faults.get(place)
            if row.fault is None:
                for own, values in got.columns.items():
                    row.metrics[bound.metric(own)] = float(values[place])
                for own, values in got.spread.items():
                    if np.isfinite(values[place]):  # the row's spread may be unknown
                        row.spread[bound.metric(own)] = float(values[place])

    def _told(self, bound: Bound, batch: Batch, rows: Sequence[_Row]) -> Metrics:
        """What it says; nothing where it was stopped. Only who measures one design reports."""
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

    def _turn(self, bound: Bound) -> AbstractContextManager[None]:
        """The machine, while a measurement runs: alone if it is exclusive, else with others."""
        if not self._turns or bound.evaluator.kind == "modelled":
            return nullcontext()
        return turn(alone=bound.exclusive, on_wait=self.on_wait)


class Readings:
    """What measured evaluators said, by what they read: nothing is measured twice."""

    def __init__(self, pipeline: Pipeline) -> None:
        self._sources = pipeline.sources
        self._measured = [b for b in pipeline.bound if b.evaluator.kind == "measured"]
        self._known: dict[tuple[str, str], tuple[dict[str, float], dict[str, float]]] = {}

    def learn(self, trial: Trial) -> None:
        """Remember what was measured for a trial; one that was stopped told no last word."""
        if trial.state is State.STOPPED:
            return
        for bound in self._measured:
            if bound.provides.keys() <= trial.metrics.keys():
                metrics = {name: trial.metrics[name] for name in bound.provides}
                spread = {n: trial.spread[n] for n in bound.provides if n in trial.spread}
                self._known.setdefault(self._key(bound, trial.design), (metrics, spread))

    def task(self, trial: Trial) -> Task:
        """The trial as a task, with all that is known of it."""
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
    """One task on its way through the pipeline."""

    def __init__(self, task: Task) -> None:
        self.design = task.design
        self.metrics = dict(task.given)
        self.spread = dict(task.spread)
        self.only = task.only
        self.skipped = False
        self.stopped = False
        self.reported: dict[str, float] = {}
        self.number = task.number
        self.fault: Fault | None = None
        self.cost_s = 0.0
        self.measured = 0

    def needs(self, bound: Bound) -> bool:
        """True if the evaluator is to run for this row."""
        if self.fault is not None or self.stopped or bound.provides.keys() <= self.metrics.keys():
            return False
        wanted = self.only is None or bound.label in self.only
        self.skipped |= not wanted
        return wanted

    def known(self) -> dict[str, Any]:
        return {**self.design, **self.metrics}

    def outcome(self) -> Outcome:
        state = State.SCREENED if self.skipped else State.DONE
        if self.stopped:
            state, self.metrics = State.STOPPED, {**self.metrics, **self.reported}
        if self.fault is not None:
            state = State.INFEASIBLE if self.fault.kind == "infeasible" else State.FAILED
        return Outcome(
            state=state,
            metrics=self.metrics,
            spread=self.spread,
            fault=self.fault,
            cost_s=self.cost_s,
            measured=self.measured,
        )


def ordered(bound: Sequence[Bound]) -> tuple[Bound, ...]:
    """The evaluators so that each follows what it reads; modelled ones as early as they can.

    What a model finds infeasible is then never measured.

    Raises:
        SpecError: two give one metric, or they read one another in a circle.
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
        raise SpecError(f"these evaluators read one another in a circle: {circle}") from error
    order: list[Bound] = []
    ready: list[str] = []
    while sorter.is_active():
        ready += sorter.get_ready()
        ready.sort(key=lambda label: (by_label[label].evaluator.kind != "modelled", label))
        order.append(by_label[ready[0]])
        sorter.done(ready.pop(0))
    return tuple(order)


def _sources(bound: Sequence[Bound]) -> dict[str, Source]:
    """Each metric with its kind and all parameters behind it, through earlier evaluators too."""
    sources: dict[str, Source] = {}
    for one in bound:
        earlier = [sources[name] for name in one.reads if name in sources]
        reads = frozenset(name for name in one.reads if name not in sources)
        reads = reads.union(*(source.reads for source in earlier))
        measured = one.evaluator.kind == "measured" or any(s.kind == "measured" for s in earlier)
        for name, metric in one.provides.items():
            sources[name] = Source(
                metric=metric, kind="measured" if measured else "modelled", reads=reads
            )
    return sources


def _checked(got: Metrics, provides: Mapping[str, Metric], size: int) -> Metrics:
    """The metrics, with a fault for each row where one is missing or is no number."""
    faults = dict(got.faults)
    columns: dict[str, Floats] = {}
    for name in provides:
        if name not in got.columns:
            reason = f"the metric {name!r} is missing"
            faults = {
                **{row: Fault(kind="invalid", reason=reason) for row in range(size)},
                **faults,
            }
            continue
        values = np.broadcast_to(np.asarray(got.columns[name], dtype=np.float64), (size,))
        for row in np.flatnonzero(~np.isfinite(values)).tolist():
            faults.setdefault(row, Fault(kind="invalid", reason=f"{name} is {values[row]}"))
        columns[name] = values
    spread = {name: got.spread[name] for name in provides if name in got.spread}
    return Metrics(columns=columns, spread=spread, faults=faults)


def _stacked(parts: Sequence[Metrics], provides: Mapping[str, Metric]) -> Metrics:
    """One-row metrics as one; rows with a fault hold NaN."""
    nothing = np.full(1, np.nan)
    columns = {
        name: np.concatenate([np.asarray(p.columns.get(name, nothing)) for p in parts])
        for name in provides
    }
    spread = {
        name: np.concatenate([np.asarray(p.spread.get(name, nothing)) for p in parts])
        for name in provides
        if any(name in p.spread for p in parts)
    }
    faults = {place: part.faults[0] for place, part in enumerate(parts) if part.faults}
    return Metrics(columns=columns, spread=spread, faults=faults)


def _unheard(_: str) -> None:
    """Nobody wants to know of waits."""


def _scaled(column: Column, factor: float) -> Column:
    return Column(
        column.values * factor,
        column.absent,
        column.codes,
        tuple(value * factor for value in column.domain if isinstance(value, int | float)),
    )


def _fault(error: Exception) -> Fault:
    if isinstance(error, InfeasibleError):
        return Fault(kind="infeasible", reason=error.problem)
    if isinstance(error, TimeoutError):
        return Fault(kind="timeout", reason=str(error) or "timed out")
    kind: FaultKind = "memory" if isinstance(error, MemoryError) else "raised"
    return Fault(kind=kind, reason=f"{type(error).__name__}: {error}")
