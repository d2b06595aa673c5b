"""Study of two formulas that a test asks for designs, and the loop that measures them."""

from __future__ import annotations

from dse import Metric, Study

SPACE = {"tile": [16, 32, 64, 128], "stages": (1, 6)}
GOALS = [Metric("time", "us", goal="minimize"), Metric("memory", "KiB", goal="minimize")]


def cost(tile: int, stages: int) -> dict[str, float]:
    return {"time": 1000 / tile + 40 / stages, "memory": tile * tile * stages / 512}


def asked(storage: str = "memory://", **options) -> Study:
    return Study("own", SPACE, metrics=GOALS, storage=storage, **options)


def drive(study: Study, at_once: int = 1, most: int = 100) -> int:
    """Ask and tell until the study is done; how often something was asked."""
    rounds = 0
    while (trials := study.ask(at_once)) and rounds < most:
        rounds += 1
        for trial in trials:
            study.tell(trial, cost(**trial.design))
    return rounds
