"""Attributes that users give a study and its trials: stored, shown, exported, and no part of replay."""

import json

import pytest
from typer.testing import CliRunner

from dse import Metric, Study, evaluator, import_study
from dse.cli.app import app
from dse.core.attributes import Attributes, attribute_event, renumbered
from dse.core.trial import Event
from dse.errors import SpecError, StudyError
from dse.storage.memory import MemoryStorage


@evaluator(Metric("time", "us", goal="minimize"))
def kernel(tile: int):
    return {"time": float(tile)}


def study(storage=None):
    space = {"tile": {"integer": [0, 100]}}
    return Study("s", space, [kernel], optimizer="random", storage=storage or MemoryStorage())


def test_the_last_value_of_a_name_counts_and_none_removes_it():
    made = study()
    made.run(trials=3)
    made.set_attribute("operator", "day shift")
    made.set_attribute("operator", {"name": "night shift", "rooms": [1, 2]})
    made.set_attribute("noise", 0.5, trial=made.trials[2])
    made.set_attribute("noise", True, trial=1)
    assert made.attributes == {"operator": {"name": "night shift", "rooms": [1, 2]}}
    assert made.trial_attributes(2) == {"noise": 0.5}
    assert made.trial_attributes(made.trials[0]) == {}
    made.set_attribute("noise", None, trial=2)
    assert made.trial_attributes(2) == {}
    assert made.trial_attributes(1) == {"noise": True}


def test_they_change_no_later_design_and_no_proof():
    made, twin = study(), study()
    made.run(trials=3)
    made.set_attribute("note", "hot", trial=0)
    made.run(trials=8)
    twin.run(trials=8)
    assert [t.design for t in made.trials] == [t.design for t in twin.trials]
    assert made.record.verify().whole


@pytest.mark.parametrize("suffix", ["jsonl", "parquet"])
def test_an_exported_file_and_the_command_line_have_them(tmp_path, monkeypatch, suffix):
    monkeypatch.chdir(tmp_path)
    made = study("sqlite:///dse.db")
    made.run(trials=3)
    made.set_attribute("operator", "night <shift>")
    made.set_attribute("noise", 0.5, trial=2)
    made.record.export(f"s.{suffix}")
    theirs = Study.load(import_study(f"s.{suffix}", name="theirs")["study"])
    assert (theirs.attributes, theirs.trial_attributes(2)) == (
        {"operator": "night <shift>"},
        {"noise": 0.5},
    )
    done = CliRunner().invoke(app, ["status", "theirs", "--format", "json"])
    facts = json.loads(done.output)
    assert facts["attributes"] == {"operator": "night <shift>"}
    assert facts["trial_attributes"] == {"2": {"noise": 0.5}}
    assert "attribute" not in {event["kind"] for event in facts["events"]}
    text = CliRunner().invoke(app, ["status", "theirs"]).output
    assert 'attribute operator: "night <shift>"' in text
    assert "attribute noise of trial 2: 0.5" in text


@pytest.mark.parametrize(
    ("name", "value", "match"),
    [
        ("", 1, "cannot be called ''"),
        (3, 1, "cannot be called '3'"),
        ("a" * 201, 1, "cannot be called"),
        ("a", float("nan"), "cannot be written as JSON"),
        ("a", {1, 2}, "cannot be written as JSON"),
        ("a", "x" * 70_000, "70,"),
    ],
)
def test_what_cannot_be_stored_is_refused(name, value, match):
    with pytest.raises(SpecError, match=match):
        study().set_attribute(name, value)


def test_a_trial_that_does_not_exist_is_refused():
    with pytest.raises(StudyError, match="no trial 3"):
        study().set_attribute("a", 1, trial=3)


def test_a_salvaged_study_keeps_them_under_new_numbers():
    event = attribute_event("noise", 0.5, trial=4)
    assert Attributes.of([renumbered(event, {4: 3})]).trials == {3: {"noise": 0.5}}
    assert renumbered(event, {5: 4}) is None
    assert renumbered(Event(kind="choice", text="x"), {}).text == "x"


@pytest.mark.parametrize(
    "text", ["", "[]", '{"trial": "x", "name": "a"}', '{"name": 3}', "[" * 9999]
)
def test_events_of_a_stranger_that_hold_no_attribute_are_skipped(text):
    assert Attributes.of([Event(kind="attribute", text=text)]) == Attributes()
