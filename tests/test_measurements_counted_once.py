"""A measurement is a trial for which a measured evaluator ran, however many did, wherever it is counted."""

import pytest

from dse import Study, evaluator
from dse.analysis.runs import Run
from dse.api.notebook.study_view import BudgetProgress
from dse.services.studies.html_report import report_text
from dse.services.studies.status import ended_json, status_json
from dse.storage.memory import MemoryStorage


@evaluator("x", kind="measured")
def board(a: int) -> dict[str, float]:
    return {"x": (a - 3) ** 2}


@evaluator("y", kind="measured")
def bench(b: int) -> dict[str, float]:
    return {"y": (b - 2) ** 2}


def fails(a: int) -> dict[str, float]:
    if a % 2:
        raise ValueError("no")
    return {"x": float(a)}


CHIP = {"use": "expression", "metrics": {"z": {"formula": "c + a"}}}
ASKED = {"minimize": ["board.x", "bench.y", "chip.z"], "budget": {"measurements": 7}}


def run(first, optimizer):
    study = Study(
        "s",
        {"a": (0, 6), "b": (0, 6), "c": (0, 2)},
        {"board": first, "bench": bench, "chip": CHIP},
        storage=MemoryStorage("memory://"),
        optimizer=optimizer,
        **ASKED,
    )
    return study, study.run(progress=False, on_error="keep")


@pytest.mark.parametrize("optimizer", ["grey-box", "random"])
@pytest.mark.parametrize("first", [board, evaluator("x", kind="measured", version="1")(fails)])
def test_budget_events_progress_status_report_and_comparison_count_alike(first, optimizer):
    study, reason = run(first, optimizer)
    engine = study.engine
    counted = {
        "status": status_json(engine)["measurements"],
        "ended": ended_json(engine, reason)["measurements"],
        "progress": int(BudgetProgress.of(study.trials, engine.bounds()).done),
        "comparison": int(Run.of("s", study.problem, study.trials).measured.sum()),
    }
    assert counted == dict.fromkeys(counted, 7)
    assert "<dt>measurements</dt><dd>7<" in report_text(engine)
    told = [event.text for event in engine.events if event.kind == "completed"]
    assert all("designs share 7 measurements" in text for text in told)
    assert bool(told) == (optimizer == "grey-box")
