"""Turns on a machine: who wants to be alone is, and waiting costs no task its time."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from dse.core.design import Design
from dse.core.trial import Outcome, State
from dse.evaluation.machine_lock import turn
from dse.executors.processes import Processes
from dse.executors.ray.cluster import RayCluster
from dse.protocols import Executor, Task
from dse.schema.study.plan import plan_of
from dse.testing.executor_contract import collected

SPACE = "space: toy\nparameters:\n  x: {ordinal: [0, 1, 2, 3, 4, 5, 6, 7]}\n"
STUDY = """
study: toy
space: space.yaml
evaluators:
  quality: {use: command, run: [PYTHON, -S, -E, spend.py], metrics: {begin: s, end: s}}
  board: {use: command, run: [PYTHON, -S, -E, spend.py], metrics: {begin: s, end: s}, exclusive: true}
objectives: [minimize: board.end, minimize: quality.end]
reference: {board.end: 1 s, quality.end: 1 s}
"""
SPEND = """
import json, time
begin = time.monotonic()
time.sleep(SECONDS)
print(json.dumps({"begin": begin, "end": time.monotonic()}))
"""


@pytest.fixture
def work(tmp_path: Path) -> Callable[[float], Any]:
    def made(seconds: float) -> Any:
        (tmp_path / "space.yaml").write_text(SPACE)
        (tmp_path / "study.yaml").write_text(STUDY.replace("PYTHON", sys.executable))
        (tmp_path / "spend.py").write_text(SPEND.replace("SECONDS", str(seconds)))
        return plan_of(tmp_path / "study.yaml").pipeline

    return made


def done(executor: Executor, count: int) -> list[Outcome]:
    for number in range(count):
        executor.submit(Task(number=number, design=Design({"x": number})))
    outcomes = collected(executor, count)
    executor.close()
    return [outcomes[number] for number in range(count)]


def spans(outcomes: list[Outcome], name: str) -> list[tuple[float, float]]:
    return sorted((o.metrics[f"{name}.begin"], o.metrics[f"{name}.end"]) for o in outcomes)


def clashes(ones: list[tuple[float, float]], others: list[tuple[float, float]]) -> list[Any]:
    return [
        (one, other) for one in ones for other in others if one[0] < other[1] > other[0] < one[1]
    ]


def overlaps(spans: list[tuple[float, float]]) -> list[Any]:
    return [(one, later) for one, later in pairwise(spans) if later[0] < one[1]]


EXECUTORS = {
    "processes": partial(Processes, workers=3),
    "ray": partial(RayCluster, workers=2),
}


@pytest.mark.slow
@pytest.mark.usefixtures("ray_nodes")
@pytest.mark.parametrize("make", EXECUTORS.values(), ids=EXECUTORS.keys())
def test_what_is_exclusive_never_meets_another_measurement(
    make: Callable[[Any], Executor], work: Callable[[float], Any]
) -> None:
    outcomes = done(make(work(0.2)), 6)
    board, quality = spans(outcomes, "board"), spans(outcomes, "quality")
    assert overlaps(board) == []
    assert clashes(board, quality) == []


@pytest.mark.slow
@pytest.mark.usefixtures("ray_nodes")
@pytest.mark.parametrize("make", EXECUTORS.values(), ids=EXECUTORS.keys())
def test_waiting_for_a_turn_takes_nothing_from_a_tasks_time(
    make: Callable[..., Executor], work: Callable[[float], Any]
) -> None:
    with turn(alone=True, on_wait=lambda _: None):
        executor = make(work(0.0), timeout_s=3.0)
        executor.submit(Task(number=0, design=Design({"x": 0})))
        assert executor.collect(6.0) == {}
    (outcome,) = collected(executor, 1).values()
    executor.close()
    assert outcome.state is State.DONE


def test_those_who_come_together_do_not_wait_for_one_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))  # where nobody else is
    waits: list[str] = []
    with turn(alone=False, on_wait=waits.append), turn(alone=False, on_wait=waits.append):
        assert waits == []
