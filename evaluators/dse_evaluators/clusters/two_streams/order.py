"""The order in which the two streams of an iteration do their work, and what waits for what."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from dse_evaluators.clusters.two_streams.models import TwoStreamsModel, Unit
from dse_evaluators.clusters.two_streams.strategies import Ways

Role = Literal[
    "lookup",
    "forward",
    "backward",
    "exchange",
    "dispatch",
    "gather",
    "scatter",
    "sum_gradients",
    "sum_activations",
    "sum_lookups",
]
_COMPUTES = frozenset({"lookup", "forward", "backward"})
_NOTHING = -1


class StreamWork(NamedTuple):
    """Role of a piece of work, and its unit; None: of the tables."""

    role: Role
    unit: Unit | None = None

    @property
    def talks(self) -> bool:
        """True if the work is in the stream that communicates."""
        return self.role not in _COMPUTES


class StreamStep(NamedTuple):
    """A place in one of the streams: which work, and the step of the other that ends before it."""

    work: int
    talks: bool
    waits: int
    """The place of that step in the same pass; -1 where none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """The works that differ, and the passes one after the other, each as its steps."""

    works: tuple[StreamWork, ...]
    passes: tuple[tuple[StreamStep, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class IterationTask:
    """Kind of an iteration: what it trains, and when it gathers weights.

    ``frozen`` stacks learn nothing; ``ahead`` gathers the weights of a unit for the backward pass
    while the one before it runs, and waits for nothing then.
    """

    learns: bool = True
    frozen: frozenset[str] = frozenset()
    ahead: bool = False


def order(model: TwoStreamsModel, dense: Ways, embedding: Ways, task: IterationTask) -> Order:
    """The steps of an iteration of a model whose weights are laid out so.

    Source:
        Hsia et al., ISCA 2024, section 4; which step waits for which is that of the authors' tool.
    """
    ways = _Ways(dense, embedding)
    works = list[StreamWork]()
    passes = [_forward(model, ways, works)]
    if task.learns:
        passes.append(_backward(model, ways, works, task))
    return Order(works=tuple(works), passes=tuple(tuple(one.steps) for one in passes))


class _Ways(NamedTuple):
    dense: Ways
    embedding: Ways


@dataclass(slots=True)
class _Pass:
    """The steps of a pass as far as they are known."""

    works: list[StreamWork]
    steps: list[StreamStep] = field(default_factory=list)

    def add(self, role: Role, unit: Unit | None = None, *, waits: int = _NOTHING) -> int:
        """The place of one more step."""
        work = StreamWork(role, unit)
        if work not in self.works:
            self.works.append(work)
        self.steps.append(StreamStep(self.works.index(work), work.talks, waits))
        return len(self.steps) - 1


def _forward(model: TwoStreamsModel, ways: _Ways, works: list[StreamWork]) -> _Pass:
    told = _Pass(works)
    shared, split = "fsdp" in ways.dense, "tp" in ways.dense
    exchanged = summed = _NOTHING
    if model.lookup_bytes:
        looked = told.add("lookup")
        if "mp" in ways.embedding:
            exchanged = told.add("exchange", waits=looked)
    done = list[int]()
    for place, unit in enumerate(model.units):
        gathered = told.add("gather", unit, waits=_before(done, 2)) if shared else _NOTHING
        handed = told.add("dispatch", unit) if split and unit.experts > 1 else _NOTHING
        looked_up = exchanged if place == model.joins else _NOTHING
        # The stream that talks keeps its order: the last of these steps ends last.
        last = max(summed, gathered, handed, looked_up)
        done.append(told.add("forward", unit, waits=last))
        if split:
            summed = max(summed, _add_reductions(told, unit, done[-1], forward=True))
    return told


def _backward(
    model: TwoStreamsModel, ways: _Ways, works: list[StreamWork], task: IterationTask
) -> _Pass:
    told = _Pass(works)
    learns_tables = bool(model.lookup_bytes) and "embedding" not in task.frozen
    units = _run_back(model, task.frozen, learns_tables=learns_tables)
    done, gathers = list[int](), _Gathers(told, units, ways, task)
    summed = returned = _NOTHING
    for turn, unit in enumerate(units):
        gathered = gathers.before(turn, done)
        handed = told.add("dispatch", unit) if "tp" in ways.dense and unit.experts > 1 else _NOTHING
        done.append(told.add("backward", unit, waits=max(summed, gathered, handed)))
        for way in ways.dense:
            if way == "tp":
                summed = max(summed, _add_reductions(told, unit, done[-1], forward=False))
            elif unit.stack not in task.frozen:
                role: Role = "sum_gradients" if way == "ddp" else "scatter"
                told.add(role, unit, waits=done[-1])
        if learns_tables and len(model.units) - 1 - turn == model.joins:
            for way in ways.embedding:
                role = "exchange" if way == "mp" else "sum_lookups"
                returned = told.add(role, waits=done[-1])
    if learns_tables:
        told.add("lookup", waits=returned)
    return told


@dataclass(slots=True)
class _Gathers:
    """Gathers of the backward pass, each issued before the unit that needs it."""

    told: _Pass
    units: Sequence[Unit]
    ways: _Ways
    task: IterationTask
    places: list[int] = field(default_factory=list)

    def before(self, turn: int, done: list[int]) -> int:
        """The place of the gather that a unit waits for; none where weights are whole."""
        if "fsdp" not in self.ways.dense:
            return _NOTHING
        if not self.task.ahead:
            return self.told.add("gather", self.units[turn], waits=_before(done, 2))
        while len(self.places) < min(turn + 2, len(self.units)):
            self.places.append(self.told.add("gather", self.units[len(self.places)]))
        return self.places[turn]


def _add_reductions(told: _Pass, unit: Unit, done: int, *, forward: bool) -> int:
    """Add the steps that complete tensor-parallel partial results; return the last one."""
    last = _NOTHING
    if unit.sums_forward if forward else unit.sums_backward:
        last = told.add("sum_activations", unit, waits=done)
    if unit.experts > 1:
        last = told.add("dispatch", unit, waits=done)
    return last


def _run_back(model: TwoStreamsModel, frozen: frozenset[str], *, learns_tables: bool) -> list[Unit]:
    """The units that something at or before them asks for a gradient, the last one first."""
    found = list[Unit]()
    asked = False
    for place, unit in enumerate(model.units):
        asked |= unit.stack not in frozen or (learns_tables and place == model.joins)
        if asked:
            found.append(unit)
    return found[::-1]


def _before(done: list[int], turns: int) -> int:
    return done[-turns] if len(done) >= turns else _NOTHING
