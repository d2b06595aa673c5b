"""However late any step of the loop comes, the README's loop uses up the whole budget."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any

import pytest

from dse import Metric, Study
from dse.api.ask_tell import Asking
from dse.api.ask_tell_executor import AskTellExecutor
from dse.study.claimed_trials import ClaimedTrials
from dse.study.history import TrialHistory
from dse.study.loop import Loop

GOALS = [Metric("time", "us", goal="minimize"), Metric("memory", "KiB", goal="minimize")]
DELAY_S = 0.01
BUDGET = 6


def list_steps() -> Iterator[Any]:
    for owner in (Loop, AskTellExecutor, Asking, ClaimedTrials, TrialHistory):
        for name, step in vars(owner).items():
            if callable(step) and not name.startswith("__"):
                yield pytest.param(owner, name, id=f"{owner.__name__}.{name}")


def delay(step: Callable[..., Any], *, before: bool) -> Callable[..., Any]:
    @wraps(step)
    def late(*args: Any, **options: Any) -> Any:
        if before:
            time.sleep(DELAY_S)
        done = step(*args, **options)
        if not before:
            time.sleep(DELAY_S)
        return done

    return late


@pytest.mark.parametrize("before", [True, False], ids=["before", "after"])
@pytest.mark.parametrize(("owner", "name"), [*list_steps()])
def test_a_late_step_ends_no_loop_early(owner, name, before, monkeypatch):
    monkeypatch.setattr(owner, name, delay(vars(owner)[name], before=before))
    study = Study(
        "late",
        {"tile": [16, 32, 64], "stages": (1, 6)},
        metrics=GOALS,
        storage="memory://",
        optimizer="sobol",
        budget={"measurements": BUDGET},
    )
    while trials := study.ask(3):
        for trial in trials:
            tile, stages = trial.design["tile"], trial.design["stages"]
            study.tell(trial, {"time": 1000 / tile, "memory": tile * stages / 512})
    assert [trial.state.value for trial in study.trials] == ["done"] * BUDGET
    assert study.ended == f"{BUDGET} measurements are done"
