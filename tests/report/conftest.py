"""A made-up study: a compressed model on a systolic array, its numbers from plain formulas."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pytest

from dse.core.design import Design
from dse.core.expressions.parser import parse
from dse.core.metric import Failure, Metric
from dse.core.objective import Limit, Objective
from dse.core.parameter import Choice, Integer, Ordinal, Real
from dse.core.pareto import ParetoSet
from dse.core.problem import Problem, Source
from dse.core.space import DesignSpace
from dse.core.trial import Event, Outcome, State, Trial

FORMATS = {"int8": (8, 0.0), "int4": (4, 0.012), "mxfp4": (4.25, 0.008), "fp16": (16, -0.002)}


@dataclass(frozen=True, repr=False)
class MadeUp:
    name: str
    question: str
    problem: Problem
    trials: Sequence[Trial]
    events: Sequence[Event]

    @property
    def front(self) -> ParetoSet:
        return ParetoSet.of(self.problem, self.trials)


def space() -> DesignSpace:
    return DesignSpace(
        parameters=(
            Choice(name="weight_format", values=tuple(FORMATS)),
            Ordinal(name="group", values=(16, 32, 64, 128)),
            Real(name="compress.sparsity", low=0.0, high=0.9),
            Ordinal(name="chip.rows", values=(8, 16, 32, 64)),
            Ordinal(name="chip.buffer", values=tuple(2**k * 1024 for k in range(5, 12)), unit="B"),
            Real(name="chip.clock", low=2e8, high=1.6e9, unit="Hz", scale="log"),
            Integer(name="chip.banks", low=4, high=4),
        ),
        conditions={"group": parse("weight_format in ['int8', 'int4']")},
    )


def problem() -> Problem:
    return Problem(
        space=space(),
        sources={
            "quality.accuracy": Source(
                metric=Metric(name="accuracy"),
                kind="measured",
                reads=frozenset({"weight_format", "group", "compress.sparsity"}),
            ),
            **{
                f"chip.{name}": Source(
                    metric=Metric(name=name, unit=unit),
                    kind="modelled",
                    reads=frozenset({"chip.rows", "chip.buffer", "chip.clock"}),
                )
                for name, unit in (("energy", "J"), ("latency", "s"), ("area", "mm2"))
            },
        },
        objectives=(
            Objective(expression=parse("quality.accuracy"), goal="maximize"),
            Objective(expression=parse("chip.energy"), goal="minimize", unit="J"),
            Objective(expression=parse("chip.latency"), goal="minimize", unit="s"),
        ),
        limits=(
            Limit(text="chip.area <= 3 mm2", slack=parse("3e-6 - chip.area * 1e-6"), scale=3e-6),
            Limit(text="quality.accuracy >= 0.8", slack=parse("quality.accuracy - 0.8"), scale=0.8),
        ),
        seed=7,
    )


def metrics_of(design: Design) -> dict[str, float]:
    bits, loss = FORMATS[str(design["weight_format"])]
    sparsity, rows = float(design["compress.sparsity"]), int(design["chip.rows"])
    buffer, clock = int(design["chip.buffer"]), float(design["chip.clock"])
    group = int(design.get("group", 32))
    work = 2.4e6 * (1 - 0.8 * sparsity)
    misses = 1 + 3e5 * bits / 8 * (1 - sparsity) / buffer
    return {
        "quality.accuracy": 0.976 - loss * group / 32 - 0.19 * sparsity**4,
        "chip.energy": work * (0.3e-12 * bits * (clock / 4e8) ** 0.6 + 0.4e-12 * misses),
        "chip.latency": work / (rows**1.7 * clock) * misses,
        "chip.area": 0.0011 * rows**1.7 + 2.2e-6 * buffer,
    }


def outcome_of(design: Design, number: int) -> Outcome:
    metrics = metrics_of(design)
    cost_s, measured = 3.0 + number % 7 / 3, int(number % 4 != 3)
    if number % 23 == 5:
        failure = Failure(kind="timeout", reason="quality took more than 60 s")
        return Outcome(state=State.FAILED, failure=failure, cost_s=60.0, measured=1)
    if number % 31 == 9:
        failure = Failure(kind="infeasible", reason="the tile does not fit the buffer")
        return Outcome(state=State.INFEASIBLE, failure=failure, cost_s=0.01)
    spread = {"quality.accuracy": 0.0021}
    return Outcome(
        state=State.DONE, metrics=metrics, spread=spread, cost_s=cost_s, measured=measured
    )


def study_of(size: int) -> MadeUp:
    asked = problem()
    designs = asked.space.sample(size, np.random.default_rng(3)).designs()
    return MadeUp(
        name="edge-digits",
        question="Which compressed model on which systolic array gives the best accuracy "
        "for the energy and the time?",
        problem=asked,
        trials=[
            Trial(number=number, design=design, told=number).finished(outcome_of(design, number))
            for number, design in enumerate(designs)
        ],
        events=(
            Event(kind="choice", text="grey-box: accuracy is measured, the chip is modelled"),
            Event(kind="fallback", text="the surrogate did not converge; asked at random", told=31),
        ),
    )


@pytest.fixture(scope="session")
def made_up() -> MadeUp:
    """A study of 120 trials, some failed, some outside limits."""
    return study_of(120)


@pytest.fixture(scope="session")
def hopeless(made_up: MadeUp) -> MadeUp:
    """The same study where no design can be small enough."""
    limit = Limit(text="chip.area <= 0.01 mm2", slack=parse("1e-8 - chip.area * 1e-6"), scale=1e-8)
    return replace(made_up, problem=replace(made_up.problem, limits=(limit,)))


@pytest.fixture(scope="session")
def large() -> MadeUp:
    """A study of 5,000 trials."""
    return study_of(5_000)
