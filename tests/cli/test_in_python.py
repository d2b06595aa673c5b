"""What a command can do Python can do: every line of the table is run, and tells the same."""

from __future__ import annotations

import ast
import json
import os
import runpy
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
import typer

import dse
from dse import Space, Study
from dse.cli.app import app
from dse.report.effect_tables import effects_json
from dse.services import resources as supplies

ROOT = Path(__file__).parents[2]
IN_PYTHON = runpy.run_path(str(ROOT / "docs" / "generated" / "in_python.py"))["IN_PYTHON"]
SLOW = ("assets install", "environments install", "doctor", "sweep", "serve")
BLOCKING = "serve"


def commands(command: Any, path: tuple[str, ...] = ()) -> list[str]:
    if not hasattr(command, "commands"):
        return [" ".join(path)]
    return [
        name for word, below in command.commands.items() for name in commands(below, (*path, word))
    ]


@pytest.fixture
def names(folder: Path) -> dict[str, Any]:
    """What the lines of the table speak of, in a folder of their own."""
    free = (folder / "free.yaml").read_text()
    (folder / "space.yaml").write_text(free.replace("real: [1, 2]", "ordinal: [1, 1.5, 2]"))
    for file, old in (("study", "formulas"), ("wider_study", "wide_formulas")):
        text = (folder / f"{old}.yaml").read_text().replace("study: formulas", "study: first")
        (folder / f"{file}.yaml").write_text(text.replace("free.yaml", "space.yaml"))
    study = Study.open("study.yaml")
    other = Study.open("study.yaml", name="second", seed=1)
    study.run()
    other.run()
    space = Space.read("space.yaml")
    return {
        "dse": dse,
        "Space": Space,
        "Study": Study,
        "supplies": supplies,
        "study": study,
        "other": other,
        "small": Study.load("odd"),
        "space": space,
    }


def said(line: str, names: dict[str, Any]) -> Any:
    return eval(line, dict(names))


def test_every_command_has_its_line():
    assert list(IN_PYTHON) == commands(typer.main.get_command(app))


@pytest.mark.parametrize(
    "line",
    [
        pytest.param(line, marks=[pytest.mark.slow] * (command in SLOW))
        for command, lines in IN_PYTHON.items()
        for line in lines
        if command not in (BLOCKING, "studies delete")
    ],
)
def test_a_line_of_the_table_works_as_written(names, line):
    assert said(line, names) is not None


def test_the_stub_tells_type_checkers_of_all_that_there_is():
    stub = ast.parse((ROOT / "dse" / "__init__.pyi").read_text())
    imports = [one for one in stub.body if isinstance(one, ast.ImportFrom)]
    names = [alias.asname for one in imports for alias in one.names]
    names += [one.targets[0].id for one in stub.body if isinstance(one, ast.Assign)]
    assert sorted(name for name in names if not name.startswith("_")) == sorted(dse.__all__)
    assert all(getattr(dse, name) is not None for name in dse.__all__)


def test_a_study_is_forgotten(names):
    (line,) = IN_PYTHON["studies delete"]
    said(line, names)
    assert "first" not in [row["study"] for row in dse.studies()]


@pytest.mark.slow
def test_the_live_view_says_where_it_is_and_ends_when_it_is_interrupted(folder):
    (line,) = IN_PYTHON[BLOCKING]
    code = f"import dse\n{line.replace(')', ', port=0, say=lambda text: print(text, flush=True))')}"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, env=dict(os.environ)
    ) as process:
        assert process.stdout is not None
        told = process.stdout.readline()
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=300) == 0
    assert "http://127.0.0.1:" in told


SAME: dict[str, tuple[list[str], Callable[[dict[str, Any]], Any]]] = {
    "status": (["status", "first"], lambda n: n["study"].record.status),
    "front": (["front", "first"], lambda n: n["study"].record.answer),
    "effects": (
        ["effects", "first"],
        lambda n: effects_json("first", n["study"].problem, n["study"].effects()),
    ),
    "compare": (["compare", "first", "second"], lambda n: dse.compare("first", "second").facts),
    "check": (["check", "study.yaml"], lambda _: [dse.check("study.yaml")]),
    "studies list": (["studies", "list"], lambda _: dse.studies()),
    "space describe": (
        ["space", "describe", "space.yaml"],
        lambda n: {**n["space"].describe(), "file": "space.yaml"},
    ),
    "space explain": (
        ["space", "explain", "space.yaml", "--set", "rows=4"],
        lambda n: n["space"].why(rows=4).json(),
    ),
    "space sample": (
        ["space", "sample", "space.yaml", "-n", "3", "--method", "stratified"],
        lambda n: [dict(one) for one in n["space"].sample(3, method="stratified")],
    ),
    "space export": (
        ["space", "export", "space.yaml", "--to", "yaml"],
        lambda n: n["space"].export("yaml"),
    ),
    "space diff": (
        ["space", "diff", "space.yaml", "free.yaml"],
        lambda n: n["space"].difference(Space.read("free.yaml")),
    ),
    "plugins list": (["plugins", "list"], lambda _: dse.plugins()),
    "plugins show": (["plugins", "show", "tpe"], lambda _: dse.plugin("tpe")),
    "assets list": (["assets", "list"], lambda _: supplies.assets.listed()),
    "assets remove": (["assets", "remove", "tiny"], lambda _: supplies.assets.remove("tiny")),
    "environments list": (["environments", "list"], lambda _: supplies.environments.listed()),
    "environments where": (["environments", "where"], lambda _: supplies.environments.where()),
}
"""What changes nothing tells the same by either way."""


@pytest.mark.parametrize("name", SAME)
def test_python_tells_what_the_command_prints(names, told, name):
    words, in_python = SAME[name]
    code = 1 if name == "space diff" else 0  # which says that there is one
    assert json.loads(json.dumps(in_python(names))) == told(*words, code=code)


DONE: dict[str, tuple[list[str], Callable[[dict[str, Any]], Any]]] = {
    "studies export": (
        ["studies", "export", "first", "-o", "first.jsonl"],
        lambda n: n["study"].record.export("first.jsonl"),
    ),
    "studies import": (
        ["studies", "import", "kept.csv", "--study", "formulas.yaml", "--name", "NEW"],
        lambda _: dse.import_study("kept.csv", study="formulas.yaml", name="other"),
    ),
    "studies merge": (
        ["studies", "merge", "first", "second", "--name", "NEW"],
        lambda n: dse.merge(n["study"], n["other"], name="other"),
    ),
    "studies migrate": (
        ["studies", "migrate", "first", "wider_study.yaml", "--to", "NEW"],
        lambda n: n["study"].record.migrate("wider_study.yaml", to="other"),
    ),
    "init": (["init", "NEW", "--yes"], lambda _: dse.init("other")),
}
"""What makes something new makes the same, but for its name."""


@pytest.mark.parametrize("name", DONE)
def test_python_does_what_the_command_does(names, told, name):
    words, in_python = DONE[name]
    mine = json.dumps(in_python(names))
    assert json.loads(mine.replace("other", "NEW")) == told(*words)


def test_a_design_is_evaluated_as_by_the_command(names, told):
    by_command = told("evaluate", "study.yaml", "--set", "rows=4", "--set", "clock=1.5")
    (trial,) = names["study"].evaluate({"rows": 4, "clock": 1.5})
    assert trial.metrics == {n: one["value"] for n, one in by_command["metrics"].items()}
    assert trial.state == by_command["state"]


def test_the_claims_of_a_study_are_judged_as_by_the_command(names, told):
    (by_command,) = told("check", "--reproduce", "study.yaml")
    judged = dse.reproduce("study.yaml")
    assert [(one.verdict, one.ours) for one in judged] == [
        (one["verdict"], one["ours"]) for one in by_command["claims"]
    ]
    assert [one.verdict for one in names["study"].record.claims] == [one.verdict for one in judged]


@pytest.mark.slow
def test_the_findings_of_the_doctor_are_those_of_the_command(told):
    mine = {one.part: asdict(one)["verdict"] for one in dse.doctor()}
    assert mine == {one["part"]: one["verdict"] for one in told("doctor")}


@pytest.mark.slow
def test_a_sweep_makes_the_studies_that_the_command_makes(names, told):
    mine = dse.sweep("study.yaml", optimizers=["random", "sobol"], seeds=2, name="mine", trials=5)
    words = ["--optimizer", "random", "--optimizer", "sobol", "--seeds", "2", "--trials", "5"]
    theirs = told("sweep", "study.yaml", *words, "--name", "theirs")
    assert [one.name for one in mine.groups] == ["random", "sobol"]
    assert [
        (one["study"].replace("mine", "theirs"), one["trials"], one["final"])
        for group in mine.facts["groups"]
        for one in group["studies"]
    ] == [
        (one["study"], one["trials"], one["final"])
        for group in theirs["groups"]
        for one in group["studies"]
    ]
