"""Results that are known already become finished trials, by Python and by the command line."""

import json

import pytest
from typer.testing import CliRunner

from dse import Metric, Study, evaluator
from dse.cli.app import app
from dse.core.trial import State
from dse.errors import DesignError, SpecError, StorageError, StudyError
from dse.interop.kernel_tuner import read_t4
from dse.storage.memory import MemoryStorage

SPACE = {"tile": {"integer": [0, 200]}, "mode": ["a", "b"]}


@evaluator(Metric("area", "mm^2", goal="minimize"), kind="modelled")
def chip(tile: int):
    return {"area": 2.0 * tile}


@evaluator(Metric("time", "us", goal="minimize"))
def board(tile: int, mode: str):
    return {"time": 100.0 - 0.3 * tile + (mode == "b")}


def study(**more):
    more = {"optimizer": "tpe", "storage": MemoryStorage(), **more}
    return Study("s", SPACE, [chip, board], **more)


def test_an_attached_result_is_a_finished_trial_with_its_origin():
    made = study()
    trial = made.attach({"tile": 7, "mode": "a"}, {"time": (90.0, 0.5)}, source="the lab")
    assert (trial.state, trial.measured) == (State.DONE, 0)
    assert trial.metrics == {"board.time": 90.0, "chip.area": 14.0}
    assert trial.spread == {"board.time": 0.5}
    assert ("attached", "trials 0 attached: the lab") in [
        (e.kind, e.text) for e in made.record.events
    ]
    assert [one.design["tile"] for one in made.front.trials] == [7]


def test_optimizers_learn_from_it_and_the_replay_counts_it():
    made, alone = study(), study()
    made.run(measurements=9)
    for tile in (3, 4, 5, 6):
        made.attach({"tile": tile, "mode": "b"}, {"board.time": 1.0})
    made.attach({"tile": 1, "mode": "b"}, failed="it burnt")
    made.run(measurements=14)
    alone.run(measurements=14)
    assert [t.design for t in made.trials[:9]] == [t.design for t in alone.trials[:9]]
    assert [t.design for t in made.trials[14:]] != [t.design for t in alone.trials[9:]]
    proof = made.record.verify()
    assert proof.whole
    assert (proof.attached, proof.unknown) == (5, 0)


def test_it_counts_for_no_budget():
    made = study(optimizer="random")
    for tile in range(4):
        made.attach({"tile": tile, "mode": "a"}, {"time": 1.0})
    made.run(trials=6)
    assert len(made.trials) == 10
    assert sum(trial.measured for trial in made.trials) == 6


def test_auto_times_a_measurement_of_its_own():
    made = study(optimizer="auto")
    made.attach({"tile": 7, "mode": "a"}, {"time": 90.0})
    made.run(measurements=2)
    assert sum(trial.measured for trial in made.trials) == 2
    assert made.record.verify().whole


def test_what_cannot_be_attached_is_refused():
    made = study()
    with pytest.raises(DesignError, match="tile"):
        made.attach({"tile": 300, "mode": "a"}, {"time": 1.0})
    with pytest.raises(StudyError, match=r"lacks board\.time"):
        made.attach({"tile": 3, "mode": "a"}, {"area": 1.0})
    with pytest.raises(SpecError, match="no metric 'tim'"):
        made.attach({"tile": 3, "mode": "a"}, {"tim": 1.0})
    assert len(made.trials) == 0
    made.attach({"tile": 3, "mode": "a"}, {"time": 1.0})
    with pytest.raises(StudyError, match="trial 0 is this design already"):
        made.attach({"tile": 3, "mode": "a"}, {"time": 1.0})


STUDY = """
study: s
space: space.yaml
evaluators:
  board: {use: command, run: [python3, none.py], metrics: {time: us}}
  chip: {use: expression, metrics: {area: {formula: tile * 2 mm^2, unit: mm^2}}}
objectives: [{minimize: board.time}, {minimize: chip.area}]
"""
ROWS = "tile,mode,board.time [ms]\n7,a,0.09\n300,a,1\n8,b,\n9,b,0.08\n7,a,3\n"


def test_a_table_is_attached_by_the_command_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "space.yaml").write_text(
        "space: s\nparameters: {tile: {integer: [0, 200]}, mode: {choice: [a, b]}}\n"
    )
    (tmp_path / "study.yaml").write_text(STUDY)
    (tmp_path / "results.csv").write_text(ROWS)
    made = Study.open("study.yaml")
    done = CliRunner().invoke(app, ["attach", "s", "results.csv"])
    assert done.exit_code == 0, done.exception
    assert "2 results attached, as trials 0 to 1" in done.output
    assert "1 left out: its design is not legal" in done.output
    assert "1 left out: it lacks board.time, which is measured" in done.output
    assert [trial.metrics["board.time"] for trial in made.trials] == pytest.approx([90.0, 80.0])
    again = CliRunner().invoke(app, ["attach", "s", "results.csv"])
    assert isinstance(again.exception, StudyError)
    assert "its design was there before" in again.exception.hint


def kernel_tuner_result(tile: int, validity: str, measured: list) -> dict:
    """Return a result in the form of T4/1.0.0/results-schema.json of kernel-tuner 1.5.0."""
    return {
        "configuration": {"tile": tile, "mode": "a"},
        "times": {"compilation": 12.5, "benchmark": 3.0, "runtimes": [0.09, 0.1]},
        "invalidity": validity,
        "correctness": 1,
        "measurements": measured,
        "objectives": ["time"],
    }


def test_results_of_kernel_tuner_are_attached_with_units_and_failures(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "space.yaml").write_text(
        "space: s\nparameters: {tile: {integer: [0, 200]}, mode: {choice: [a, b]}}\n"
    )
    (tmp_path / "study.yaml").write_text(STUDY)
    time = {"name": "time", "value": 0.09, "unit": "ms"}
    results = [
        kernel_tuner_result(7, "correct", [time, {"name": "name", "value": "gpu", "unit": ""}]),
        kernel_tuner_result(8, "compile", [{"name": "time", "value": "CompilationFailedConfig"}]),
        kernel_tuner_result(9, "constraints", []),
    ]
    text = json.dumps({"schema_version": "1.0.0", "results": results})
    (tmp_path / "t4.json").write_text(text)
    made = Study.open("study.yaml")
    done = CliRunner().invoke(app, ["attach", "s", "t4.json"])
    assert done.exit_code == 0, done.exception
    assert [trial.state.value for trial in made.trials] == ["done", "failed", "infeasible"]
    assert made.trials[0].metrics["board.time"] == pytest.approx(90.0)
    assert "compile" in made.trials[1].failure.reason


def test_a_file_of_another_form_is_refused_with_its_place(tmp_path):
    file = tmp_path / "t4.json"
    file.write_text('{"results": [{"configuration": {"tile": 1}}]}')
    with pytest.raises(StorageError, match="T4") as caught:
        read_t4(file, ["board.time"])
    assert "results[0]" in str(caught.value)
