"""Every command's JSON is strict, is what its published schema says, and stands alone on stdout."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from dse.cli.app import build_command
from dse.cli.json_schemas import PUBLISHED, example, schema

RUNS: dict[str, list[list[str]]] = {
    "init": [["init", "new", "--yes"], ["init", "new", "--yes", "--measured", "table"]],
    "run": [
        ["run", "odd.yaml", "--name", "again", "--trials", "5"],
        ["run", "hopeless.yaml", "-q"],
        ["run", "ladder.yaml", "--name", "more", "--trials", "3"],
    ],
    "resume": [["resume", "formulas", "--trials", "8"], ["resume", "empty"]],
    "verify": [["verify", "formulas"], ["verify", "odd"], ["verify", "empty"]],
    "status": [["status", "odd"], ["status", "empty"], ["status"]],
    "front": [
        *(["front", study] for study in ("odd", "empty", "hopeless", "formulas", "ladder")),
        ["front", "odd", "--at", "odd.time <= 5 s"],
        ["front", "empty", "--at", "odd.time <= 5 s", "--best", "minimize: odd.time"],
    ],
    "choose": [["choose", "formulas"], ["choose", "formulas", "--list"]],
    "judge": [["judge", "odd"], ["judge", "odd", "--again"]],
    "deploy": [["deploy", "odd", "--trial", "0", "--to", "torch", "-o", "model.pt"]],
    "calibrate collectives": [
        ["calibrate", "collectives", "sizes.csv", "--like", "h100-dgx", "-o", "my-node.yaml"]
    ],
    "calibrate devices": [
        ["calibrate", "devices", "products.csv", "--like", "h100-sxm", "-o", "my-h100.yaml"]
    ],
    "calibrate serving": [
        ["calibrate", "serving", "services.csv", "--like", "h100-sxm", "-o", "my-services.yaml"]
    ],
    "calibrate training": [
        ["calibrate", "training", "steps.csv", "--like", "h100-dgx", "-o", "my-cluster.yaml"]
    ],
    "compress": [["compress", "net", "--recipe", "format int4:channel", "-o", "net-int4"]],
    "learn": [["learn", "runs.csv", "--metrics", "latency=ms", "-o", "latency.dse"]],
    "trials": [["trials", study] for study in ("odd", "empty", "hopeless", "formulas", "ladder")],
    "compare": [["compare", "formulas", "factorial"], ["compare", "odd", "empty"]],
    "sweep": [["sweep", "formulas.yaml", "--optimizer", "random", "--optimizer", "sobol"]],
    "effects": [["effects", "factorial"], ["effects", "odd"]],
    "report": [["report", "odd", "-o", "odd.html"]],
    "check": [["check", "odd.yaml", "free.yaml", "formulas.yaml"]],
    "check --reproduce": [["check", "--reproduce", "formulas.yaml"]],
    "doctor": [["doctor"]],
    "evaluate": [["evaluate", "odd.yaml", "--set", "mode=fine", "--set", "rows=1"]],
    "attach": [["attach", "factorial", "kept.csv"]],
    "space count": [["space", "count", "space.yaml"], ["space", "count", "free.yaml"]],
    "space describe": [["space", "describe", "space.yaml"], ["space", "describe", "free.yaml"]],
    "space explain": [
        ["space", "explain", "space.yaml", "--set", "rows=1"],
        ["space", "explain", "free.yaml"],
    ],
    "space sample": [["space", "sample", "space.yaml"], ["space", "sample", "free.yaml"]],
    "space neighbours": [["space", "neighbours", "space.yaml"]],
    "space enumerate": [["space", "enumerate", "space.yaml"]],
    "space export": [
        ["space", "export", "space.yaml", "--to", "yaml"],
        ["space", "export", "space.yaml", "--to", "yaml", "-o", "flat.yaml"],
        ["space", "export", "space.yaml", "--to", "optuna", "--drop-rules"],
    ],
    "space import": [["space", "import", "theirs.json"]],
    "space diff": [["space", "diff", "free.yaml", "free.yaml"]],
    "plugins list": [["plugins", "list"]],
    "plugins show": [["plugins", "show", name] for name in ("odd", "random", "table", "serial")],
    "studies list": [["studies", "list"]],
    "studies delete": [["studies", "delete", "odd", "--yes"]],
    "studies migrate": [["studies", "migrate", "formulas", "wide_formulas.yaml"]],
    "studies export": [
        ["studies", "export", "odd", "-o", "odd.jsonl"],
        ["studies", "export", "odd", "-o", "odd.csv"],
        ["studies", "export", "empty", "-o", "empty.parquet"],
        ["studies", "export", "odd", "--salvage", "-o", "salvaged.jsonl"],
    ],
    "studies import": [
        ["studies", "import", "kept.jsonl", "--name", "theirs"],
        ["studies", "import", "kept.csv", "--study", "formulas.yaml", "--name", "begun"],
    ],
    "studies trust": [["studies", "trust", "odd"], ["studies", "trust", "odd", "--yes"]],
    "studies merge": [["studies", "merge", "formulas", "factorial", "--name", "both"]],
    "assets list": [["assets", "list"]],
    "assets install": [["assets", "install", "tiny"]],
    "assets where": [["assets", "where"]],
    "assets remove": [["assets", "remove", "tiny"]],
    "environments list": [["environments", "list"]],
    "environments install": [["environments", "install", "tool"]],
    "environments where": [["environments", "where"]],
    "environments remove": [["environments", "remove", "tool"]],
}
"""What each command is called with; each ends with exit code 0."""


def commands(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    if not hasattr(command, "commands"):
        yield " ".join(path), command
        return
    for name, below in command.commands.items():
        yield from commands(below, (*path, name))


COMMANDS = dict(commands(build_command()))


def formats(command: Any) -> list[str]:
    """The values of a command's option ``--format``."""
    found = [one.type_descriptor for one in command.params if "--format" in one.opts]
    return [str(choice) for one in found for choice in one.annotation]


def shapes() -> list[Any]:
    """Every object of every schema, by its name."""
    every = [schema(command) for command in PUBLISHED]
    return [(name, part) for one in every for name, part in one.get("$defs", {}).items()] + [
        (one["title"], one) for one in every if "properties" in one
    ]


def test_every_command_that_tells_a_result_tells_it_as_json():
    silent = [name for name, command in COMMANDS.items() if "json" not in formats(command)]
    assert silent == ["serve"]


def test_all_that_commands_print_as_json_is_published_and_nothing_else():
    told = {name for name, command in COMMANDS.items() if "json" in formats(command)}
    assert {name.partition(" --")[0] for name in PUBLISHED} == told
    assert set(RUNS) == set(PUBLISHED)


@pytest.mark.parametrize("name", PUBLISHED)
def test_an_example_is_what_the_program_takes(name):
    _, *words = shlex.split(example(name))
    command = build_command()
    while hasattr(command, "commands"):
        command = command.commands[words.pop(0)]
    assert command.make_context("dse", words) is not None


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_schema_is_one(name):
    Draft202012Validator.check_schema(schema(name))


@pytest.mark.parametrize(
    ("name", "part"), shapes(), ids=lambda one: one if isinstance(one, str) else ""
)
def test_an_object_says_what_each_key_means_and_takes_no_other(name, part):
    assert [key for key, value in part["properties"].items() if not value.get("description")] == []
    assert part["additionalProperties"] is False
    assert part["description"]


def test_a_name_of_an_object_means_one_object():
    meant: dict[str, Any] = {}
    for name, part in shapes():
        assert meant.setdefault(name, part) == part


@pytest.mark.parametrize(
    "words",
    [
        pytest.param(
            words,
            id=" ".join(words),
            marks=[pytest.mark.slow]
            * (words[1:2] == ["install"] or words[0] in ("doctor", "sweep")),
        )
        for runs in RUNS.values()
        for words in runs
    ],
)
def test_what_a_command_prints_is_what_its_schema_says(told, words):
    assert told(*words) is not None
