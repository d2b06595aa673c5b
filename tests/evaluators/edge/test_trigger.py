"""Stages that filter events: rates, power and quality by hand."""

import pytest

from dse.core.batch import Batch
from dse.errors import SpecError
from dse_evaluators.edge.trigger import Trigger

STAGES = {
    "front": {"true_rate": 0.9, "false_rate": 0.1, "energy": "1 uJ", "bit_energy": "1 nJ"},
    "farm": {"true_rate": 0.5, "false_rate": 0.01, "energy": "1 mJ", "bit_energy": 0.0},
}
FLOW = {"rate": 1000.0, "relevant": 0.1, "event_bits": 100.0}


def run(**design):
    found = Trigger(stages=STAGES, **FLOW).evaluate(Batch.of([{"front_on": True} | design]))
    return {name: column[0] for name, column in found.columns.items()}


def test_rates_power_and_quality_are_those_by_hand():
    found = run()
    # 100 relevant and 900 others; then 90 and 90; then 45 and 0.9
    assert found["kept_rate"] == pytest.approx(45.9)
    assert found["recall"] == pytest.approx(0.45)
    assert found["precision"] == pytest.approx(45 / 45.9)
    assert found["compute_power"] == pytest.approx(1000 * 1e-6 + 180 * 1e-3)
    assert found["link_power"] == pytest.approx(1000 * 100 * 1e-9)
    assert found["relevant_per_kilojoule"] == pytest.approx(45e3 / found["power"])


def test_a_stage_that_is_off_passes_all_events_at_no_cost():
    found = run(front_on=False)
    assert found["recall"] == pytest.approx(0.5)
    assert found["power"] == pytest.approx(1000 * 1e-3)


def test_a_figure_that_a_stage_does_not_state_is_an_input():
    stages = {"front": {"energy": 1.0, "bit_energy": 0.0, "true_rate": 1.0}}
    made = Trigger(stages=stages, **FLOW)
    assert made.reads == {"front_false_rate"}
    found = made.evaluate(Batch.of([{"front_false_rate": 0.0}, {"front_false_rate": 1.0}]))
    assert found.columns["precision"].tolist() == pytest.approx([1.0, 0.1])


@pytest.mark.parametrize(
    ("stages", "words"),
    [
        ({}, "stages is empty"),
        ({"front": {"true_rat": 1.0}}, "the stage 'front' has no 'true_rat'"),
        ({"front": {"energy": "fast"}}, "front: energy is 'fast'"),
        ({"front": {"true_rate": 1.5}}, "front_true_rate cannot be 1.5"),
    ],
)
def test_stages_that_are_not_are_refused(stages, words):
    with pytest.raises(SpecError, match=words):
        Trigger(stages=stages)
