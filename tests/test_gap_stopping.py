"""A study that stops by its gap, and where the gap is shown."""

import json
from dataclasses import replace
from itertools import product

import pytest
from typer.testing import CliRunner

from dse import Metric, Study, evaluator
from dse.cli.app import app
from dse.core.attributes import others
from dse.core.pareto import ParetoSet, hypervolume
from dse.core.recorded_gap import KIND, REACHED, UNDECIDED, RecordedGap
from dse.core.trial import Event
from dse.errors import SpecError, SpecErrors, StudyError
from dse.optimizers.bayesian.hypervolume_gap import GapEstimator
from dse.report.html.study_page import report_html
from dse.schema.models import BudgetSpec
from dse.schema.study.budget import Budget, budget_of, change_budget
from dse.schema.study.plan import plan_of
from dse.services.studies.results_json import answer_json
from dse.services.studies.status import status_json
from dse.storage.memory import MemoryStorage
from dse.study.study_engine import StudyEngine

SPACE = "space: s\nparameters:\n  rows: {ordinal: 'range(1 .. 12)'}\n  cols: {ordinal: 'range(1 .. 12)'}\n"
STUDY = """
study: s
space: space.yaml
evaluators:
  chip:
    use: expression
    metrics: {time: {formula: 1000 / (rows * cols)}, area: {formula: rows * cols + rows}}
objectives: [{minimize: chip.time}, {minimize: chip.area}]
optimizer: random
executor: {use: serial, batch: 1}
"""


def chip(rows: int, cols: int) -> dict[str, float]:
    return {"time": 1000 / (rows * cols) ** 0.8, "area": rows * cols + 2 * rows}


def asked(storage, **options) -> Study:
    kernel = evaluator(Metric("time", "s", goal="minimize"), Metric("area", "", goal="minimize"))
    space = {"rows": (1, 12), "cols": (1, 12)}
    return Study("chip", space, {"chip": kernel(chip)}, storage=storage, **options)


def every_design():
    return [{"rows": rows, "cols": cols} for rows, cols in product(range(1, 13), repeat=2)]


def run_cli(*words):
    result = CliRunner().invoke(app, list(words))
    assert result.exit_code == 0, result.output
    return result


def begun(folder, text: str, space: str = SPACE):
    (folder / "space.yaml").write_text(space)
    (folder / "study.yaml").write_text(STUDY + text)
    return folder / "study.yaml"


@pytest.fixture(scope="module")
def stopped():
    study = asked(MemoryStorage(), optimizer="random", budget={"gap": "10 %", "measurements": 120})
    return study, study.run()


def record(study):
    return [(t.design, t.metrics) for t in study.engine.trials], [
        (event.kind, event.text) for event in study.engine.events
    ]


def test_a_study_stops_at_its_gap_with_an_optimizer_without_surrogate(stopped):
    study, reason = stopped
    assert "within 10 % of the hypervolume, with 90 % confidence" in reason
    assert 15 < len(study.engine.trials) < 120
    assert [event.text for event in study.engine.events if event.kind == REACHED] == [reason]


def test_a_study_that_has_stopped_by_its_gap_asks_nothing_more(stopped):
    study, reason = stopped
    before = record(study)
    assert study.run() == reason
    assert record(study) == before


@pytest.mark.parametrize("cut", [9, 20, 27])
def test_an_interrupted_study_stops_by_its_gap_where_an_uninterrupted_one_does(stopped, cut):
    storage = MemoryStorage()
    first = asked(storage, optimizer="random", budget={"gap": "10 %", "measurements": 120})
    first.run(measurements=cut)
    again = asked(storage, optimizer="random", budget={"gap": "10 %", "measurements": 120})
    assert again.run() == stopped[1]
    assert record(again) == record(stopped[0])


def test_a_smaller_gap_continues_an_ended_study():
    study = asked(MemoryStorage(), optimizer="random")
    study.run(gap="60 %", measurements=40)
    before = len(study.engine.trials)
    assert study.run(gap="1e-3 %", measurements=before + 1) == f"{before + 1} measurements are done"


def test_status_front_and_report_show_the_last_gap(stopped):
    engine = stopped[0].engine
    status, front = status_json(engine), answer_json(engine)
    assert status["gap"] == front["gap"]
    assert 0 <= status["gap"]["share"] <= 0.1
    assert status["gap"]["designs"] == 144
    assert len(status["gap"]["points"]) == min(status["gap"]["undecided"], 64)
    assert [event["kind"] for event in status["events"]].count("gap") == 1
    page = report_html("chip", "", engine.front, engine.trials, engine.events)
    assert f"of 144 designs undecided after {status['gap']['measurements']} measurements" in page


def test_the_gap_of_an_exact_front_is_zero(tmp_path):
    path = begun(tmp_path, "")
    path.write_text(path.read_text().replace("optimizer: random", "optimizer: exhaustive"))
    study = StudyEngine.open(path, storage=MemoryStorage())
    study.run()
    gap = status_json(study)["gap"]
    assert (gap["share"], gap["confidence"], gap["designs"]) == (0.0, 1.0, 144)


def test_a_study_of_models_stops_once_the_front_is_nearly_the_exact_one(tmp_path):
    path = begun(tmp_path, "budget: {gap: 5 %, trials: 144}\n")
    study = StudyEngine.open(path, storage=MemoryStorage())
    assert "within 5 % of the hypervolume" in study.run()


GAP = RecordedGap(
    share=0.0123,
    confidence=0.9,
    measurements=24,
    undecided=1_200,
    designs=20_000,
    finished=25,
    points=tuple((float(n), -0.5) for n in range(200)),
)


def test_a_recorded_gap_is_read_as_it_was_written():
    read = RecordedGap.of(GAP.events)
    assert replace(read, points=()) == replace(GAP, points=())
    assert len(read.points) == 50
    sampled = replace(GAP, is_sampled=True)
    assert RecordedGap.of(sampled.events).is_sampled


@pytest.mark.parametrize("text", ["", "{}", '{"after": 24, "points": 3}', '{"after": 24, "points": [["x"]]}', "[" * 9_999])  # fmt: skip
def test_damaged_points_of_a_strangers_record_are_left_out(text):
    damaged = [GAP.events[0], Event(kind=UNDECIDED, text=text, told=25)]
    assert RecordedGap.of(damaged).points == ()


def test_a_damaged_gap_is_unknown():
    assert RecordedGap.of([Event(kind=KIND, text="at most no % of it", told=1)]) is None


def test_only_the_last_gap_is_listed_among_the_events():
    later = replace(GAP, measurements=30)
    other = Event(kind="choice", text="grey-box", told=1)
    shown = others([other, *GAP.events, *later.events])
    assert [event.text for event in shown] == ["grey-box", later.text]


@pytest.mark.parametrize(
    ("budget", "told"),
    [
        ("{gap: 200 %}", "a gap of 200 % is reached at once"),
        ("{gap: 0 %}", "a budget's gap is above zero"),
        ("{gap: 1 s}", "'1 s' is no gap"),
        ("{confidence: 90 %}", "a budget's confidence needs a gap"),
        ("{gap: 1 %, confidence: 99.9 %}", "a confidence of 99.9 % is not from 50 % to 99 %"),
        ("{gap: 1 %, confidnce: 90 %}", "did you mean 'confidence'"),
    ],
)
def test_a_mistaken_gap_is_refused_with_its_line(tmp_path, budget, told):
    with pytest.raises((SpecError, SpecErrors)) as caught:
        plan_of(begun(tmp_path, f"budget:\n  {budget}\n"))
    assert told in str(caught.value)
    assert "study.yaml:1" in str(caught.value)


def test_a_gap_of_models_over_a_space_that_cannot_be_listed_is_refused(tmp_path):
    path = begun(tmp_path, "budget: {gap: 1 %}\n", SPACE + "  depth: {real: [0, 1]}\n")
    path.write_text(path.read_text().replace("rows * cols + rows", "rows * cols + depth"))
    with pytest.raises((SpecError, SpecErrors), match="no metric is measured") as caught:
        plan_of(path)
    assert "study.yaml:11" in str(caught.value)


def test_a_gap_alone_has_a_confidence_of_90_percent():
    assert budget_of(BudgetSpec(gap="1 %")) == Budget(gap=0.01, confidence=0.9)


def test_an_option_changes_the_confidence_of_the_files_gap():
    stated = Budget(gap=0.02, confidence=0.9)
    assert change_budget(stated, BudgetSpec(confidence="80 %")) == Budget(gap=0.02, confidence=0.8)
    assert change_budget(Budget(gap=0.02, confidence=0.8), BudgetSpec(gap="1 %")) == Budget(
        gap=0.01, confidence=0.8
    )


def test_the_gap_on_demand_is_the_one_that_a_run_recorded(stopped):
    study, _ = stopped
    recorded = RecordedGap.of(study.engine.events)
    loaded = Study.load("chip", study.engine.storage)
    assert RecordedGap.of(loaded.gap().events) == recorded
    assert recorded.finished == len(study.trials)
    assert recorded.found == pytest.approx(study.front.hypervolume_share, rel=1e-5)
    assert 1 - recorded.found / recorded.optimistic == pytest.approx(recorded.share)


def test_a_study_without_a_gap_in_its_budget_has_one_on_demand(stopped):
    study = asked(MemoryStorage(), optimizer="random")
    study.run(measurements=20)
    assert RecordedGap.of(study.engine.events) is None
    assert study.gap(confidence="60 %").share < study.gap().share
    assert study.gap().confidence == 0.9


@pytest.mark.parametrize(
    ("measurements", "lacking"),
    [
        (4, "4 of the 10 feasible trials that fix the reference point"),
        (12, "12 measurements are too few to calibrate it at 90 % confidence"),
    ],
)
def test_a_gap_after_too_few_trials_is_an_error_that_states_what_is_lacking(measurements, lacking):
    study = asked(MemoryStorage(), optimizer="random")
    study.run(measurements=measurements)
    with pytest.raises(StudyError, match=lacking):
        study.gap()


def test_a_mistaken_confidence_of_a_gap_on_demand_is_refused(stopped):
    with pytest.raises(SpecError, match="is not from 50 % to 99 %"):
        stopped[0].gap(confidence="99.9 %")


def test_the_command_front_estimates_the_gap_on_demand(tmp_path):
    storage = f"sqlite:///{tmp_path / 'dse.db'}"
    study = asked(storage, optimizer="random")
    study.run(measurements=20)
    shown = run_cli("front", "chip", "--gap", "--storage", storage)
    assert f"gap: at most {100 * study.gap().share:.2g} % (90 % confidence)" in shown.output
    told = json.loads(
        run_cli("front", "chip", "--gap", "--format", "json", "--storage", storage).output
    )
    assert told["gap"]["share"] == study.gap().share
    assert told["gap"]["found"] == pytest.approx(told["hypervolume_share"], rel=1e-5)
    without = json.loads(run_cli("front", "chip", "--format", "json", "--storage", storage).output)
    assert without["gap"] is None


def test_the_gap_of_objectives_with_a_log_scale_counts_their_logarithms():
    options = {"optimizer": "random", "log_scale": ["chip.time", "chip.area"]}
    study = asked(MemoryStorage(), **options)
    study.run(measurements=30)
    gap = GapEstimator(study.problem).estimate(study.engine.finished)
    assert gap.found == pytest.approx(study.front.hypervolume_share)
    assert (gap.undecided > 0).all()
    truth = ParetoSet.of(study.problem, study.evaluate(*every_design()))
    scaled = study.problem.on_scales
    corner = scaled(study.front.found.reference)
    missing = 1 - study.front.hypervolume / hypervolume(scaled(truth.losses), corner)
    assert missing <= gap.share < 1
