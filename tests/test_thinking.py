"""The option ``thinking``: suggestions cost a share of a measurement, and replay reads events."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from dse import Metric, Study, evaluator
from dse.core.trial import Event
from dse.errors import DseError
from dse.optimizers.auto import LEAST_SURROGATE_S, optimizer_for
from dse.registry import load
from dse.schema.study.plan import plan_of
from dse.storage.memory import MemoryStorage
from dse.study.replay import Replay
from dse.study.thinking import KIND, EffortChange, ThinkingControl, effort_at, effort_changes
from dse.testing.problems import tiny_codesign, zdt1

SPACE = "space: s\nparameters:\n  rows: {integer: [1, 64]}\n"
STUDY = """
study: s
space: space.yaml
evaluators:
  EVALUATOR
objectives: [{minimize: board.power}]
optimizer:
  use: USE
  thinking: SHARE
"""
MEASURED = "board: {use: command, run: ['true'], metrics: {power: mW}}"
MODELLED = "board: {use: expression, metrics: {power: {formula: rows + 1}}}"


def plan_in(folder, use="grey-box", share="10 %", evaluators=MEASURED):
    (folder / "space.yaml").write_text(SPACE)
    text = STUDY.replace("USE", use).replace("SHARE", share).replace("EVALUATOR", evaluators)
    (folder / "study.yaml").write_text(text)
    return plan_of(folder / "study.yaml")


@evaluator(Metric("time", "us", goal="minimize"), Metric("area", goal="minimize"))
def kernel(tile: int, stages: int) -> dict[str, float]:
    return {"time": 1000 / tile + 40 / stages, "area": tile * stages}


def study_of(name: str, storage: object, share: object, use: str = "grey-box") -> Study:
    space = {"tile": (8, 64), "stages": (1, 12)}
    chosen = {"use": use, "thinking": share}
    return Study(name, space, [kernel], storage=storage, optimizer=chosen, seed=3)


def control(efforts: int = 3, share: float = 0.1) -> ThinkingControl:
    return ThinkingControl(optimizer=SimpleNamespace(efforts=efforts, effort=0), share=share)


def measured(cost_s: float, count: int = 5) -> list:
    return [SimpleNamespace(cost_s=cost_s)] * count


def test_a_suggestion_above_its_share_lowers_the_effort_and_is_an_event() -> None:
    one = control()
    for _ in range(4):
        one.note(0.3, 1)
    events = one.choose(7, measured(1.0), [])
    assert one.optimizer.effort == 1
    assert [event.kind for event in events] == [KIND]
    assert effort_changes(events) == [EffortChange(first=7, effort=1, batch=1)]
    assert "10 % of a measurement is 100 ms" in events[0].text


def test_a_suggestion_far_above_its_share_goes_to_the_cheapest_member_at_once() -> None:
    one = control()
    one.note(9.0, 1)  # the first one imports
    one.note(9.0, 1)
    one.choose(7, measured(1.0), [])
    assert (one.optimizer.effort, one.batch) == (2, 1)


def test_below_the_cheapest_effort_one_request_gives_several_designs() -> None:
    one = control()
    one.resume([EffortChange(first=3, effort=2, batch=1)])
    for _ in range(5):
        one.note(0.3, 1)
    events = one.choose(9, measured(1.0), [EffortChange(first=3, effort=2, batch=1)])
    assert (one.optimizer.effort, one.batch) == (2, 2)
    assert effort_changes(events) == [EffortChange(first=9, effort=2, batch=2)]


def test_dearer_measurements_allow_more_effort_again() -> None:
    changes = [EffortChange(first=3, effort=1, batch=1)]
    one = control()
    one.resume(changes)
    for _ in range(5):
        one.note(0.01, 1)
    one.choose(9, measured(1.0), changes)
    assert one.optimizer.effort == 0


def test_without_a_measured_cost_the_effort_stays() -> None:
    one = control()
    for _ in range(5):
        one.note(9.0, 1)
    assert one.choose(9, measured(0.0), []) == []
    assert one.optimizer.effort == 0


def test_the_effort_of_a_request_is_that_of_the_last_change_before_it() -> None:
    texts = [
        "from trial 9: effort 2, designs per ask: 1 (x)",
        "from trial 4: effort 1, designs per ask: 1",
    ]
    changes = effort_changes([Event(kind=KIND, text=text) for text in texts])
    assert [effort_at(changes, first) for first in (3, 4, 8, 9, 50)] == [0, 1, 1, 2, 2]


@pytest.mark.parametrize("use", ["grey-box", "tpe"])
def test_a_resumed_study_is_replayed_from_its_events_without_a_clock(use) -> None:
    storage = MemoryStorage()
    study_of("s", storage, "0.0001 %", use).run(measurements=9)
    resumed = study_of("s", storage, "0.0001 %", use)
    resumed.run(measurements=18)
    changes = effort_changes(resumed.engine.events)
    proof = Replay(resumed.engine).proof()
    assert (proof.whole, proof.trials) == (True, 18)
    assert changes[-1].effort == {"grey-box": 3, "tpe": 1}[use]
    assert len(resumed.engine.storage.asks("s")) < 18
    assert Replay(resumed.engine, sample=3, seed=2).proof().sound


class Forgetful(MemoryStorage):
    """Storage that can lose the changes of effort."""

    forgets = False

    def events(self, study: str) -> list[Event]:
        found = super().events(study)
        return [event for event in found if not (self.forgets and event.kind == KIND)]


def test_a_record_without_its_changes_of_effort_does_not_replay() -> None:
    storage = Forgetful()
    study = study_of("s", storage, "0.0001 %")
    study.run(measurements=14)
    assert Replay(study.engine).proof().whole
    storage.forgets = True
    assert Replay(study.engine).proof().mismatch is not None


def test_auto_compares_the_share_with_the_price_of_a_surrogate() -> None:
    dear = optimizer_for(zdt1().problem, 5_000, 60.0, thinking=0.1)
    cheap = optimizer_for(tiny_codesign().problem, 50, 2e-4, thinking=0.1)
    assert (dear.use, cheap.use) == ("grey-box", "nsga2")
    assert cheap.reason == (
        "10 % of a measurement of 0.2 ms is 0.02 ms, but a surrogate's suggestion takes "
        f"{1e3 * LEAST_SURROGATE_S:g} ms or more: evolution chooses faster than a surrogate"
    )


def test_the_share_is_part_of_the_plan(tmp_path) -> None:
    plan = plan_in(tmp_path, use="auto")
    assert (plan.optimizer.thinking, plan.optimizer.options) == ("10 %", {})
    assert plan.identity["optimizer"] == {"use": "auto", "thinking": "10 %"}


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ({"use": "random"}, "thinking has no effect with the optimizer 'random'"),
        ({"use": "nsga2"}, "use one of: auto, grey-box, qlognehvi, tpe"),
        ({"share": "10 ms"}, "'10 ms' is no share of the cost of a measurement"),
        ({"share": "0"}, "thinking is 0, but must be above zero"),
        ({"evaluators": MODELLED}, "objectives and limits read no measured metric"),
        ({"use": "auto", "evaluators": MODELLED}, "read no measured metric"),
    ],
)
def test_a_share_without_effect_is_an_error_at_its_line(tmp_path, words, told) -> None:
    with pytest.raises(DseError) as caught:
        plan_in(tmp_path, **words)
    assert told in str(caught.value)
    assert "study.yaml:9" in str(caught.value)


@pytest.mark.parametrize("use", ["grey-box", "qlognehvi", "tpe"])
def test_each_level_of_effort_has_a_description(use) -> None:
    plugin = load("optimizers", use)
    assert len(plugin.effort_words) == plugin.efforts


def test_the_event_states_what_the_optimizer_does_from_there_on() -> None:
    words = ("all candidates", "half of them", "offspring")
    optimizer = SimpleNamespace(efforts=3, effort=0, effort_words=words)
    one = ThinkingControl(optimizer=optimizer, share=0.1)
    for _ in range(4):
        one.note(0.3, 1)
    (event,) = one.choose(7, measured(1.0), [])
    assert event.text.startswith("from trial 7: effort 1, designs per ask: 1 (half of them; a")
    assert effort_changes([event]) == [EffortChange(first=7, effort=1, batch=1)]
