"""Order and dependencies of the steps of the compute and the communication stream."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from dse_evaluators.clusters.two_streams.layer_units import TwoStreamsModel, Unit
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
    """Computation or communication for a unit of layers; ``unit`` is ``None`` for the tables."""

    role: Role
    unit: Unit | None = None

    @property
    def talks(self) -> bool:
        """Whether the work runs in the communication stream of a device."""
        return self.role not in _COMPUTES


class StreamStep(NamedTuple):
    """Step of one stream, with the step of the other stream that must end before it starts."""

    work: int
    """Index into ``Order.works``."""
    talks: bool
    """Whether the step is in the communication stream."""
    waits: int
    """Index of the awaited step in the same pass; -1: the step waits for no other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """Distinct work items of an iteration, and the steps of its forward and backward pass."""

    works: tuple[StreamWork, ...]
    passes: tuple[tuple[StreamStep, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class IterationTask:
    """Kind of an iteration: which layers of a model it trains, and when it gathers weights.

    ``learns`` is whether there is a backward pass. The stacks (groups of layers) named in
    ``frozen`` are not trained. With ``ahead``, the weights of a unit are gathered for the backward
    pass while the previous unit runs, without waiting for any step.
    """

    learns: bool = True
    frozen: frozenset[str] = frozenset()
    ahead: bool = False


def order(model: TwoStreamsModel, dense: Ways, embedding: Ways, task: IterationTask) -> Order:
    """Return the steps of an iteration for the given layouts of layers and tables.

    Source:
        Hsia et al., ISCA 2024, section 4; the waits between steps are those of the authors' tool.
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
    """Builder of the ordered steps of a forward or backward pass."""

    works: list[StreamWork]
    steps: list[StreamStep] = field(default_factory=list)

    def add(self, role: Role, unit: Unit | None = None, *, waits: int = _NOTHING) -> int:
        """Append a step to the pass and return its index."""
        work = StreamWork(role, unit)
        if work not in self.works:
            self.works.append(work)
        self.steps.append(StreamStep(self.works.index(work), work.talks, waits))
        return len(self.steps) - 1


def _forward(model: TwoStreamsModel, ways: _Ways, works: list[StreamWork]) -> _Pass:
    steps = _Pass(works)
    shared, split = "fsdp" in ways.dense, "tp" in ways.dense
    exchanged = summed = _NOTHING
    if model.lookup_bytes:
        looked = steps.add("lookup")
        if "mp" in ways.embedding:
            exchanged = steps.add("exchange", waits=looked)
    done = list[int]()
    for place, unit in enumerate(model.units):
        gathered = steps.add("gather", unit, waits=_before(done, 2)) if shared else _NOTHING
        handed = steps.add("dispatch", unit) if split and unit.experts > 1 else _NOTHING
        looked_up = exchanged if place == model.joins else _NOTHING
        # The communication stream runs in order: of these steps the one added last ends last.
        last = max(summed, gathered, handed, looked_up)
        done.append(steps.add("forward", unit, waits=last))
        if split:
            summed = max(summed, _add_reductions(steps, unit, done[-1], forward=True))
    return steps


def _backward(
    model: TwoStreamsModel, ways: _Ways, works: list[StreamWork], task: IterationTask
) -> _Pass:
    steps = _Pass(works)
    learns_tables = bool(model.lookup_bytes) and "embedding" not in task.frozen
    units = _run_back(model, task.frozen, learns_tables=learns_tables)
    done, gathers = list[int](), _Gathers(steps, units, ways, task)
    summed = returned = _NOTHING
    for turn, unit in enumerate(units):
        gathered = gathers.before(turn, done)
        handed = (
            steps.add("dispatch", unit) if "tp" in ways.dense and unit.experts > 1 else _NOTHING
        )
        done.append(steps.add("backward", unit, waits=max(summed, gathered, handed)))
        for way in ways.dense:
            if way == "tp":
                summed = max(summed, _add_reductions(steps, unit, done[-1], forward=False))
            elif unit.stack not in task.frozen:
                role: Role = "sum_gradients" if way == "ddp" else "scatter"
                steps.add(role, unit, waits=done[-1])
        if learns_tables and len(model.units) - 1 - turn == model.joins:
            for way in ways.embedding:
                role = "exchange" if way == "mp" else "sum_lookups"
                returned = steps.add(role, waits=done[-1])
    if learns_tables:
        steps.add("lookup", waits=returned)
    return steps


@dataclass(slots=True)
class _Gathers:
    """FSDP weight gathers of the backward pass, each issued before the unit that needs it."""

    steps: _Pass
    units: Sequence[Unit]
    ways: _Ways
    task: IterationTask
    places: list[int] = field(default_factory=list)

    def before(self, turn: int, done: list[int]) -> int:
        """Add the weight gather of a unit to the stream; return its step index, -1 without FSDP."""
        if "fsdp" not in self.ways.dense:
            return _NOTHING
        if not self.task.ahead:
            return self.steps.add("gather", self.units[turn], waits=_before(done, 2))
        while len(self.places) < min(turn + 2, len(self.units)):
            self.places.append(self.steps.add("gather", self.units[len(self.places)]))
        return self.places[turn]


def _add_reductions(steps: _Pass, unit: Unit, done: int, *, forward: bool) -> int:
    """Add the collectives after a tensor-parallel unit; return the index of the last, else -1."""
    last = _NOTHING
    if unit.sums_forward if forward else unit.sums_backward:
        last = steps.add("sum_activations", unit, waits=done)
    if unit.experts > 1:
        last = steps.add("dispatch", unit, waits=done)
    return last


def _run_back(model: TwoStreamsModel, frozen: frozenset[str], *, learns_tables: bool) -> list[Unit]:
    """Return the units of the backward pass, last unit first.

    A unit has a backward pass if that unit or an earlier part of the model is trained.
    """
    found = list[Unit]()
    asked = False
    for place, unit in enumerate(model.units):
        asked |= unit.stack not in frozen or (learns_tables and place == model.joins)
        if asked:
            found.append(unit)
    return found[::-1]


def _before(done: list[int], turns: int) -> int:
    return done[-turns] if len(done) >= turns else _NOTHING
