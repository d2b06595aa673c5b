"""Spaces and measurements that are exchanged with Kernel Tuner, in its formats T1 and T4."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from dse import Metric, Study, evaluator
from dse.cli.app import app
from dse.errors import EvaluationError, SpecError
from dse.interop.tuning_space import read_t1
from dse.services.studies.attach_table import attach_table
from dse.storage.memory import MemoryStorage

SPACE = {"tile": [8, 16, 32], "mode": ["a", "b"], "fast": {"boolean": True}}


@evaluator(Metric("time", "us", goal="minimize"))
def board(tile: int, mode: str, fast: bool):
    if tile == 32 and mode == "b":
        raise EvaluationError("no memory")
    return {"time": tile / 7 + fast}


@evaluator(Metric("area", "mm^2", goal="minimize"), kind="modelled")
def chip(tile: int):
    return {"area": 2.0 * tile}


def problem(parameters, conditions=()):
    """Return a tuning problem in the format T1."""
    listed = [{"Name": n, "Type": "int", "Values": v} for n, v in parameters.items()]
    rules = [{"Parameters": [], "Expression": one} for one in conditions]
    space = {"TuningParameters": listed, "Conditions": rules}
    return json.dumps({"ConfigurationSpace": space, "KernelSpecification": {"KernelName": "k"}})


def facts(trial):
    return trial.state, trial.design, trial.metrics.get("board.time"), trial.failure is None


def test_measurements_come_back_as_they_were(tmp_path):
    made = Study("s", SPACE, [board, chip], optimizer="exhaustive", storage=MemoryStorage())
    made.run()
    made.record.export(tmp_path / "t4.json")
    back = Study("s", SPACE, [board, chip], optimizer="random", storage=MemoryStorage())
    again = tmp_path / "again.json"
    found = json.loads((tmp_path / "t4.json").read_text())
    assert {one["invalidity"] for one in found["results"]} == {"correct", "runtime"}
    assert found["results"][0]["objectives"] == ["time"]
    attach_table(back.engine, tmp_path / "t4.json")
    back.record.export(again)
    assert [facts(trial) for trial in back.trials] == [facts(trial) for trial in made.trials]
    keys = ("configuration", "invalidity", "measurements", "objectives")
    assert [{k: one[k] for k in keys} for one in json.loads(again.read_text())["results"]] == [
        {k: one[k] for k in keys} for one in found["results"]
    ]


@given(
    tiles=st.lists(st.integers(1, 64), min_size=1, max_size=6, unique=True),
    last=st.integers(2, 9),
    limit=st.integers(1, 300),
)
def test_a_tuning_problem_has_the_designs_that_python_allows(tiles, last, limit):
    values = {"block": repr(tiles), "work": f"list(range(1, {last}))"}
    rule = f"block * work <= {limit} and (work % 2 == 0 or block != {tiles[0]})"
    space = read_t1(problem(values, [rule])).space
    allowed = {
        (block, work)
        for block in tiles
        for work in range(1, last)
        if block * work <= limit and (work % 2 == 0 or block != tiles[0])
    }
    assert space.count() == len(allowed)
    designs = space.sample(5, np.random.default_rng(0)) if allowed else ()
    assert {(d["block"], d["work"]) for d in map(dict, designs)} <= allowed


def test_texts_and_truth_values_are_choices_and_rules_may_name_them():
    rules = ["method != 'True' or fuse == True"]
    space = read_t1(problem({"method": "['True', 'b c']", "fuse": "[True, False]"}, rules)).space
    assert space.count() == 3


def test_a_tuning_problem_becomes_a_space_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t1.json").write_text(problem({"x-y": "[1, 2]", "z": "(4, 8)"}, ["z > 4"]))
    done = CliRunner().invoke(app, ["space", "import", "t1.json", "-o", "space.yaml"])
    assert done.exit_code == 0, done.exception
    assert "'x-y' is called x_y here" in done.output
    counted = CliRunner().invoke(app, ["space", "count", "space.yaml"])
    assert counted.stdout.strip() == "2"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (problem({}), "no TuningParameters"),
        (problem({"a": "[i for i in range(3)]"}), "values .* of a cannot be read"),
        (problem({"a": "__import__('os')"}), "values .* of a cannot be read"),
        (problem({"a": "[]"}), "a has no values"),
        (problem({"a": "range(10**9)"}), "values .* of a cannot be read"),
        (problem({"a": "[1]"}, ["a <<< 2"]), "<"),
        (problem({"a": "[1]"}, ["b < 2"]), "names 'b', no tuning"),
        ('{"ConfigurationSpace": {"TuningParameters": [{"Name": "a"}]}}', "Name, Type and Values"),
    ],
)
def test_what_cannot_be_read_is_refused(text, message):
    with pytest.raises(SpecError, match=message):
        read_t1(text)
