"""What is done to our storage, each in a process of its own."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

from question import begun, designs, outcomes, url

from dse.study.study_engine import StudyEngine

ALONE = 300
"""Trials that are added and finished one by one: each waits for the disk twice."""


def fill(folder: Path, name: str, trials: int, batch: int) -> Iterator[tuple[str, int, float]]:
    """Add and finish trials, the first of them one by one."""
    study = begun(folder, name)
    storage = study.storage
    new, ended = designs(trials), outcomes(trials, seed=len(name))
    sizes = [1] * min(ALONE, trials) + [batch] * (max(trials - ALONE, 0) // batch)
    sizes += [left] if (left := trials - sum(sizes)) else []
    spent = {"add": [0.0, 0.0], "finish": [0.0, 0.0]}
    number = 0
    for size in sizes:
        some = list(islice(new, size))
        told = dict(zip(range(number, number + size), ended, strict=False))
        spent["add"][size > 1] += _timed(lambda some=some: storage.add(name, some))
        spent["finish"][size > 1] += _timed(lambda told=told: storage.finish(name, told))
        number += size
    alone = min(ALONE, trials)
    for what, (one_by_one, together) in spent.items():
        yield f"{what} one by one", alone, one_by_one
        yield f"{what} by {batch}", trials - alone, together
    storage.close()


def fill_many(folder: Path, studies: int, trials: int) -> Iterator[tuple[str, int, float]]:
    """Begin so many studies that share the trials."""
    each, started = trials // studies, time.perf_counter()
    ended = dict(enumerate(outcomes(each, seed=0)))
    for place in range(studies):
        study = begun(folder, f"study {place}")
        study.storage.add(study.name, list(designs(each)))
        study.storage.finish(study.name, ended)
        study.storage.close()
    yield f"add to {studies} studies", each * studies, time.perf_counter() - started


def open_(folder: Path, name: str) -> Iterator[tuple[str, int, float]]:
    """Load the study, all trials as columns, and the best; then look at each trial."""
    started = time.perf_counter()
    study = StudyEngine.load(name, url(folder))
    trials = study.trials
    front = study.front
    assert len(front.trials) > 0
    yield "open: load, trials, best", len(trials), time.perf_counter() - started
    every = list(trials)
    yield "open and look at each trial", len(every), time.perf_counter() - started


def _timed(act: Callable[[], object]) -> float:
    started = time.perf_counter()
    act()
    return time.perf_counter() - started
