"""``dse init``: files that run before a line of them is changed."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from dse.cli.app import app
from dse.errors import SpecError
from dse.schema.study.plan import plan_of
from dse.services.init.answers import (
    EXAMPLE_METRICS,
    EXAMPLE_PARAMETERS,
    InitAnswers,
    ParameterAnswer,
    parse_metric,
    parse_parameter,
)
from dse.services.init.templates import files

runner = CliRunner()


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.slow
@pytest.mark.parametrize("measured", ["command", "table", "formula"])
def test_an_example_of_each_kind_runs_as_it_is_written(measured: str):
    assert runner.invoke(app, ["init", "first", "--measured", measured, "--yes"]).exit_code == 0
    words = ["run", "first/study.yaml", "--executor", "serial", "--measurements", "6", "-q"]
    assert runner.invoke(app, words).exit_code == 0
    told = json.loads(runner.invoke(app, ["front", "first", "--format", "json"]).stdout)
    assert told["front"]


def test_a_table_has_a_row_for_every_design_that_can_be_asked_for(folder):
    runner.invoke(app, ["init", ".", "--measured", "table", "--yes"])
    rows = (folder / "measured.csv").read_text().splitlines()
    assert plan_of(folder / "study.yaml").problem.space.count() == len(rows) - 1


def test_what_is_answered_is_what_is_written(folder):
    answers = "mine\nWhich one?\nformula\nx = 1..4\nkind = a, b\n\nminimize time ms\n\n"
    result = runner.invoke(app, ["init", "here"], input=answers)
    assert result.exit_code == 0
    plan = plan_of(folder / "here" / "study.yaml")
    assert (plan.name, plan.question) == ("mine", "Which one?")
    assert [one.name for one in plan.problem.space.parameters] == ["x", "kind"]
    assert [one.text for one in plan.problem.objectives] == ["bench.time"]


def test_an_answer_that_is_none_is_asked_again():
    answers = "mine\n\nmagic\nformula\nx\nx = 1..4\n\nfaster\nminimize time\n\n"
    result = runner.invoke(app, ["init", "here"], input=answers)
    assert result.exit_code == 0
    assert "'magic' is not one of them" in result.output
    assert "'x' is no parameter" in result.output
    assert "'faster' is no metric" in result.output


def test_no_file_is_overwritten(folder):
    (folder / "study.yaml").write_text("mine")
    result = runner.invoke(app, ["init", "--yes"])
    assert "is there already" in str(result.exception)
    assert (folder / "study.yaml").read_text() == "mine"
    assert not (folder / "space.yaml").exists()


def test_an_unknown_unit_is_told_and_leaves_nothing_behind(folder):
    result = runner.invoke(app, ["init", "here", "--metric", "minimize time furlongs", "--yes"])
    assert "furlongs" in str(result.exception)
    assert not (folder / "here").exists()


@pytest.mark.parametrize(
    ("line", "axis"),
    [
        ("threads = 1..16", ParameterAnswer(name="threads", low=1.0, high=16.0)),
        ("rate=0.1 .. 0.9", ParameterAnswer(name="rate", low=0.1, high=0.9)),
        ("size = 16, 32,64", ParameterAnswer(name="size", values=(16.0, 32.0, 64.0))),
        ("format = int8, fp16", ParameterAnswer(name="format", values=("int8", "fp16"))),
    ],
)
def test_a_line_is_a_parameter(line: str, axis: ParameterAnswer):
    assert parse_parameter(line) == axis


@pytest.mark.parametrize(
    "line", ["threads", "= 1..2", "1x = 1..2", "x = 2..1", "x = a..b", "x = a", "x = a, a", "x ="]
)
def test_a_line_that_is_no_parameter_is_refused(line: str):
    with pytest.raises(SpecError):
        parse_parameter(line)


@pytest.mark.parametrize(
    "line", ["time", "shrink time", "minimize", "minimize a b c", "maximize 1"]
)
def test_a_line_that_is_no_metric_is_refused(line: str):
    with pytest.raises(SpecError):
        parse_metric(line)


@pytest.mark.parametrize("name", ["on", "12", "a: b", "it's", "x # y", "- z", '"q"', "naïve"])
def test_any_words_find_their_way_through_the_files(folder, name: str):
    asked = InitAnswers(
        name="mine",
        question=name,
        measuring="formula",
        axes=(ParameterAnswer(name="kind", values=(name, "other")), *EXAMPLE_PARAMETERS),
        metrics=EXAMPLE_METRICS,
    )
    for file, text in files(asked).items():
        (folder / file).write_text(text, encoding="utf-8")
    plan = plan_of(folder / "study.yaml")
    assert plan.question == name
    assert plan.problem.space.parameters[0].values == (name, "other")


@pytest.mark.parametrize(
    "told", ["size = 64 KiB, 128 KiB", "size = 1 KiB .. 8 KiB", "t = 5ms, 6ms"]
)
def test_a_parameter_with_units_is_no_list_of_words(told: str):
    with pytest.raises(SpecError, match="has a unit") as caught:
        parse_parameter(told)
    assert "space.yaml" in caught.value.hint


def test_the_size_of_a_model_is_a_word():
    assert parse_parameter("model = 7B, 70B") == ParameterAnswer(name="model", values=("7B", "70B"))


@pytest.mark.parametrize("words", ["2d,3d", "8bit,4bit", "4g,8g", "1m,2m", "1h,2h", "30s,60s"])
def test_a_number_with_a_letter_is_a_word(words: str):
    assert parse_parameter(f"dims={words}") == ParameterAnswer(
        name="dims", values=tuple(words.split(","))
    )


@pytest.mark.parametrize("told", ["2 h, 3 h", "64KiB, 128KiB"])
def test_who_is_refused_units_is_told_how_words_are_written(told: str):
    with pytest.raises(SpecError, match="has a unit") as caught:
        parse_parameter(f"x = {told}")
    assert "{choice: [" in caught.value.hint


@pytest.mark.parametrize(
    ("what", "words"),
    [
        ("metric 'time'", ["-m", "minimize time ms", "-m", "maximize time"]),
        ("parameter 'x'", ["-p", "x = 1..4", "-p", "x = 1..8"]),
    ],
)
def test_a_name_given_twice_is_told_in_those_words(folder, what: str, words: list[str]):
    result = runner.invoke(app, ["init", "here", "--yes", *words])
    assert str(result.exception) == f"there is a {what} already\n  hint: name another"
    assert list(folder.iterdir()) == []


def test_a_list_may_stand_in_brackets():
    assert parse_parameter("x = [1, 2, 4]") == ParameterAnswer(name="x", values=(1.0, 2.0, 4.0))


def test_what_makes_no_study_is_told_without_lines_of_files_that_are_not_there(folder):
    result = runner.invoke(app, ["init", "here", "--parameter", "in = 1..4", "--yes"])
    assert str(result.exception).startswith("'in' is no name")
    assert list(folder.iterdir()) == []


def test_a_name_is_asked_for_until_it_is_another():
    answers = "mine\n\nformula\nx = 1..4\nx = 1..8\n\nminimize time msec\nminimize time ms\n\n"
    result = runner.invoke(app, ["init", "here"], input=answers)
    assert result.exit_code == 0
    assert "there is a parameter 'x' already" in result.output
    assert "did you mean 'ms'?" in result.output


def test_the_last_words_can_be_typed_as_they_stand(folder):
    told = runner.invoke(app, ["init", "my first: $1", "--yes"]).stdout
    assert "dse evaluate 'my first: $1/study.yaml'  # evaluates one design" in told
    assert plan_of(folder / "my first: $1" / "study.yaml").name == "my-first---1"


def test_a_program_is_shown_a_design_as_it_will_come():
    asked = InitAnswers(
        name="s",
        question="?",
        measuring="command",
        axes=EXAMPLE_PARAMETERS,
        metrics=EXAMPLE_METRICS,
    )
    assert '{"threads": 1, "block": 16, "format": "fp32"}' in files(asked)["measure.py"]


def test_who_is_not_there_to_be_asked_is_told_how_not_to_be(folder):
    result = runner.invoke(app, ["init", "here"], input="mine\n")
    assert result.exit_code == 1
    assert "nothing was written; --yes skips the questions" in result.stderr
    assert list(folder.iterdir()) == []
