"""A run of which every measurement failed is no success, and says so even when it is quiet."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from dse.cli.app import app
from dse.cli.output.failure_text import are_in_vain
from dse.core.design import Design
from dse.core.metric import Failure
from dse.core.trial import Outcome, State, Trial

STUDY = """
study: vain
space: space.yaml
evaluators:
  bench: {use: command, run: [sh, -c, PROGRAM], metrics: {time: ms}, timeout: 60 s}
objectives: [{minimize: bench.time}]
optimizer: sobol
executor: serial
budget: {measurements: 2}
"""


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    Path("space.yaml").write_text("space: s\nparameters:\n  rows: {ordinal: [1, 2, 4]}\n")

    def run_it(program: str, *words: str):
        Path("study.yaml").write_text(STUDY.replace("PROGRAM", program))
        return CliRunner().invoke(app, ["run", "study.yaml", *words])

    return run_it


@pytest.mark.parametrize("words", [(), ("--quiet",), ("--output", "json", "--quiet")])
def test_a_run_in_vain_ends_with_another_status_and_says_so(run, words):
    words = tuple("--format" if word == "--output" else word for word in words)
    done = run("'echo no board >&2; exit 3'", *words)
    assert done.exit_code == 1, done.output
    assert "all 2 trials failed" in done.stderr
    assert "no board" in done.stderr
    effects = CliRunner().invoke(app, ["effects", "vain"])
    assert "no board" in str(effects.exception)


def test_a_quiet_run_that_found_something_is_quiet(run):
    done = run("""'echo "{\\"time\\": 1}"'""", "--quiet")
    assert (done.exit_code, done.output) == (0, "")


@pytest.mark.parametrize(
    ("states", "vain"),
    [
        ("", False),
        ("failed", True),
        ("failed failed infeasible", True),
        ("infeasible infeasible", False),
        ("failed done", False),
    ],
)
def test_which_runs_are_in_vain(states, vain):
    failure = Failure(kind="raised", reason="x")
    trials = [
        Trial(number=number, design=Design({"a": number})).finished(
            Outcome(state=State(state), failure=None if state == "done" else failure)
        )
        for number, state in enumerate(states.split())
    ]
    assert are_in_vain(trials) == vain


@pytest.mark.parametrize("words", [(), ("--quiet",), ("--quiet", "--format", "json")])
def test_a_search_that_finds_no_design_with_a_value_is_in_vain(run, words):
    Path("model.yaml").write_text(
        "study: model\nspace: space.yaml\nobjectives: [{minimize: m.time}]\n"
        "evaluators: {m: {use: expression, metrics: {time: {formula: rows * (0 / (rows - rows))}}}}\n"
    )
    run("exit 1")  # which writes the space
    for _ in range(2):  # also where it is run again
        done = CliRunner().invoke(app, ["run", "model.yaml", *words])
        assert done.exit_code == 1, done.output
        assert done.output.count("3 of 3 legal designs failed, such as rows=1") >= 1
