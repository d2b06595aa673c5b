"""A study's limit keeps what a rule of a space keeps: both compare fractions to twelve digits."""

import pytest

from dse import Metric, Study, evaluator
from dse.core.batch import Column
from dse.core.trial import State
from dse.schema.study.claims import accepting
from dse.storage.memory import MemoryStorage

DESIGNS = {"a": [0.1, 0.2], "b": [0.2, 0.4]}

# The sum 0.1 + 0.2 is 0.30000000000000004: one bit above the 0.3 of each limit.
KEPT = [
    ("e.s <= 0.3", "", {0.3}),
    ("e.s < 0.3", "", set()),
    ("0.3 >= e.s", "", {0.3}),
    ("e.s >= 0.3", "", {0.3, 0.4, 0.5, 0.6}),
    ("e.s > 0.3", "", {0.4, 0.5, 0.6}),
    ("0.3 <= e.s <= 0.4", "", {0.3, 0.4}),
    ("a + b <= 0.3", "", {0.3}),
    ("e.s <= 300 ms", "s", {0.3}),
    ("e.s <= 0.3 ms", "ms", {0.3}),
    ("e.s <= 30 percent", "%", {0.3}),
]


def sums(unit, kind="modelled"):
    factor = 100 if unit == "%" else 1

    @evaluator(Metric("s", unit, goal="minimize"), kind=kind)
    def e(a: float, b: float) -> dict[str, float]:
        return {"s": factor * (a + b)}

    return {"e": e}


@pytest.mark.parametrize("optimizer", ["exhaustive", "decompose", "random"])
@pytest.mark.parametrize(("limit", "unit", "kept"), KEPT)
def test_a_limit_keeps_what_agrees_to_twelve_digits(limit, unit, kept, optimizer):
    groups = {"x": [1, 2]} if optimizer == "decompose" else {}
    asked = {
        "unread": [*groups],
        "constraints": limit,
        "optimizer": optimizer,
        "seed": 1,
        "budget": {"trials": 40},
    }
    study = Study(
        "s", {**DESIGNS, **groups}, sums(unit), storage=MemoryStorage("memory://"), **asked
    )
    study.run(progress=False)
    scale = 100 if unit == "%" else 1
    best = [round(trial.metrics["e.s"] / scale, 9) for trial in study.front]
    assert best == sorted(kept)[:1]
    done = [trial for trial in study.trials if trial.state is State.DONE]
    inside = study.problem.feasible(done).tolist()
    assert {
        round(t.metrics["e.s"] / scale, 9) for t, ok in zip(done, inside, strict=True) if ok
    } <= kept


def test_a_completed_front_keeps_what_agrees_to_twelve_digits():
    @evaluator(Metric("loss", goal="minimize"), kind="measured")
    def board(c: int) -> dict[str, float]:
        return {"loss": c / 10}

    study = Study(
        "s",
        {**DESIGNS, "c": [1, 2]},
        {**sums(""), "board": board},
        minimize=["board.loss", "e.s"],
        constraints=["e.s <= 0.3", "0.1 + board.loss <= 0.3"],
        storage=MemoryStorage("memory://"),
        optimizer="grey-box",
        budget={"measurements": 2},
    )
    study.run(progress=False)
    assert [trial.design["c"] for trial in study.front] == [1]
    assert [round(trial.metrics["e.s"], 9) for trial in study.front] == [0.3]
    assert study.problem.feasible(list(study.trials)).sum() == 2


@pytest.mark.parametrize(
    ("accept", "ours", "holds"),
    [("ours <= 0.3", 0.1 + 0.2, True), ("ours > 0.3", 0.1 + 0.2, False)],
)
def test_what_a_claim_accepts_agrees_to_twelve_digits(accept, ours, holds):
    assert accepting(accept, "").holds({"ours": Column.of([ours])}, 1, unknown=False)[0] == holds
