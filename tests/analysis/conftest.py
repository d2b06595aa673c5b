"""Runs of a question with two losses, from plain numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pytest

from dse.analysis.run_groups import RunGroup
from dse.analysis.runs import Run
from dse.core.design import Design
from dse.core.expressions.parser import parse
from dse.core.metric import Metric
from dse.core.objective import Objective
from dse.core.parameter import Integer
from dse.core.problem import Problem, Source
from dse.core.space import DesignSpace
from dse.core.trial import State, Trial


def objective(text: str, goal="minimize", unit: str = "J") -> Objective:
    return Objective(expression=parse(text), goal=goal, unit=unit)


@dataclass(frozen=True)
class Question:
    """What the runs are made from."""

    problem: Problem

    def run(
        self, name: str, *points: tuple[float, float], problem: Problem | None = None, seed: int = 0
    ) -> Run:
        asked = replace(problem or self.problem, seed=seed)
        return Run.of(name, asked, trials(points))

    def group(
        self, name: str, fronts: Sequence[Sequence[tuple[float, float]]], first=0
    ) -> RunGroup:
        runs = [self.run(f"{name}.{s}", *f, seed=s) for s, f in enumerate(fronts, start=first)]
        return RunGroup(name, tuple(runs))

    def chance(self, name: str, rng: np.random.Generator, size: int, first=0) -> RunGroup:
        """Runs of thirty random points each."""
        return self.group(name, rng.random((size, 30, 2)).tolist(), first)


def trials(points: Sequence[Sequence[float]]) -> list[Trial]:
    return [
        Trial(
            number=number,
            design=Design({"x": number}),
            state=State.DONE,
            metrics={"t.a": a, "t.b": b},
            cost_s=10.0,
            measured=1,
        )
        for number, (a, b) in enumerate(points)
    ]


@pytest.fixture(scope="session")
def question() -> Question:
    """Two losses, told from (4, 4)."""
    return Question(
        Problem(
            space=DesignSpace(parameters=(Integer(name="x", low=0, high=99),)),
            sources={
                name: Source(
                    metric=Metric(name=name, unit="J"), kind="measured", reads=frozenset({"x"})
                )
                for name in ("t.a", "t.b")
            },
            objectives=(objective("t.a"), objective("t.b")),
            fixed_reference=(4.0, 4.0),
        )
    )


@pytest.fixture(scope="session")
def made_objective() -> Callable[..., Objective]:
    return objective
