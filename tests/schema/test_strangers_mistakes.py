"""What somebody who knows other tools writes at first, and what he is told."""

from pathlib import Path

import pytest

from dse.errors import DseError, SpecError, SpecErrors, nearest
from dse.schema.history.recorded_specification import difference
from dse.schema.study.plan import plan_of
from dse.schema.yaml.files import Files
from dse.services.doctor.check_files import judged_file

SPACE = """\
space: mine
parameters:
  workers: {ordinal: [1, 2, 4]}
  format: {choice: [int8, int4]}
constraints:
  - workers <= 4
"""

STUDY = """\
study: mine
space: space.yaml
evaluators:
  bench:
    use: command
    run: [python3, bench.py]
    metrics:
      time: ms
      loss: ''
    timeout: 10 s
  whole:
    use: expression
    metrics:
      cost:
        formula: bench.time * 2
        unit: ms
objectives:
  - minimize: whole.cost
  - minimize: bench.loss
budget: {measurements: 8}
"""


@pytest.fixture
def answered(tmp_path: Path, monkeypatch):
    """What a study is answered with, in whose files a text is another one."""
    monkeypatch.chdir(tmp_path)

    def answer(text: str, instead: str) -> str:
        assert text in SPACE + STUDY
        (tmp_path / "space.yaml").write_text(SPACE.replace(text, instead))
        (tmp_path / "study.yaml").write_text(STUDY.replace(text, instead))
        with pytest.raises(DseError) as caught:
            plan_of(tmp_path / "study.yaml")
        return str(caught.value)

    return answer


@pytest.mark.parametrize(
    ("text", "instead", "where", "hint"),
    [
        ("timeout:", "time_out:", "study.yaml:10", "did you mean 'timeout'?"),
        ("time: ms", "time: msec", "study.yaml:8", "did you mean 'ms'?"),
        ("10 s", "10 sec", "study.yaml:10", "did you mean 's'?"),
        ("[python3, bench.py]", "python3 bench.py", "study.yaml:6", "run: [python3, bench.py]"),
        ("formula:", "fomula:", "study.yaml:14", "did you mean 'formula'?"),
        ("unit: ms", "unit: W", "study.yaml:14", "declare 'unit: ms'"),
        ("bench.time * 2", "bench.time * (2", "study.yaml:14", "^"),
        ("bench.time * 2", "bench.tiem * 2", "study.yaml:14", "did you mean 'bench.time'?"),
    ],
)
def test_a_mistake_in_an_evaluator_is_told_with_its_own_line(answered, text, instead, where, hint):
    told = answered(text, instead)
    assert f"{where}: " in told
    assert hint in told


def test_a_formula_in_no_unit_is_not_told_to_declare_nothing(answered):
    assert "leave its unit out" in answered("formula: bench.time * 2", "formula: bench.loss * 2")


@pytest.mark.parametrize(
    ("text", "instead", "hint"),
    [
        ("minimize: bench.loss", "minimize: loss", "did you mean 'bench.loss'?"),
        ("- minimize: bench.loss", "- bench.loss", "write '- minimize: bench.loss', or maximize"),
        ("minimize: bench.loss", "min: bench.loss", "write 'minimize'"),
        ("{measurements: 8}", "{measurements: '8'}", "without quotes: 8"),
        ("{measurements: 8}", "{n_trials: 8}", "write 'trials'"),
        ("budget: {measurements: 8}", "n_trials: 8", "write 'budget: {trials: N}'"),
        ("    run:", "\trun:", "spaces where the tab is"),
        ("space: space.yaml", "space: other/space.yaml", "there is no folder other"),
        ("{ordinal: [1, 2, 4]}", "[1, 2, 4]", "such as workers: {ordinal: [1, 2, 4]}"),
        ("{ordinal: [1, 2, 4]}", "{ordinal: pow2(1, 4)}", "a text with a comma goes in quotes"),
        ("{ordinal: [1, 2, 4]}", "{integer: [1, 4, 2]}", "'step: 2' is a key of its own"),
        ("{ordinal: [1, 2, 4]}", "{integer: 1..4}", "such as integer: [1, 8]"),
        ("{ordinal: [1, 2, 4]}", "{float: [0, 1]}", "write 'real'"),
        ("{ordinal: [1, 2, 4]}", "{real: [1, 4], log: true}", "write 'scale: log'"),
        ("{choice: [int8, int4]}", "{categorical: [int8, int4]}", "write 'choice'"),
        ("  - workers <= 4", "  workers <= 4", "on a line of its own, after '- '"),
        ("workers <= 4", "format == int4", "a word goes in quotes: 'int4'"),
        ("workers <= 4", "workers =< 4", "write '<='"),
        ("workers <= 4", "workers <= 90 %", "'90 percent' or 0.9"),
        ("workers <= 4", "workers <= 90 % and workers > 1", "'90 percent' or 0.9"),
    ],
)
def test_what_other_tools_write_is_answered_with_how_it_is_written_here(
    answered, text, instead, hint
):
    assert hint in answered(text, instead)


def test_a_space_that_is_run_as_a_study_is_told_so_in_one_line(tmp_path):
    (tmp_path / "space.yaml").write_text(SPACE)
    with pytest.raises(SpecErrors, match="this is no study") as caught:
        plan_of(tmp_path / "space.yaml")
    assert len(caught.value.errors) == 1
    assert "a study names it: 'space: space.yaml'" in str(caught.value)


MISSPELT = """\
name: mine
space: st2.yaml
evaluator: {bench: {use: command, run: [x], metrics: {time: ms}}}
objective: [{minimize: bench.time}]
"""


@pytest.mark.parametrize("left_out", ["", "space: st2.yaml\n"])
def test_the_mistakes_of_a_study_are_told_where_every_key_of_it_is_misspelt(tmp_path, left_out):
    (tmp_path / "study.yaml").write_text(MISSPELT.replace(left_out, ""))
    with pytest.raises(SpecErrors, match="did you mean 'evaluators'") as caught:
        plan_of(tmp_path / "study.yaml")
    told = judged_file(str(tmp_path / "study.yaml"))
    assert "no study" not in str(caught.value)
    assert {one["message"] for one in told["errors"]} == set(map(str, caught.value.errors))


@pytest.mark.parametrize(
    "text", ["space: s\nparamters: {}\n", "parameters: {}\nseed: 1\n", "extends: b.yaml\n"]
)
def test_a_misspelt_space_is_judged_as_one(tmp_path, text):
    (tmp_path / "s.yaml").write_text(text)
    with pytest.raises(SpecErrors, match="this is no study"):
        plan_of(tmp_path / "s.yaml")
    told = str(judged_file(str(tmp_path / "s.yaml"))["errors"])
    assert "evaluators" not in told


def test_half_a_measurement_is_not_offered_without_quotes(answered):
    told = answered("{measurements: 8}", "{measurements: '3.5'}")
    assert "expected a whole number, found '3.5'" in told
    assert "without quotes" not in told


def test_a_folder_is_answered_with_the_files_in_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "space.yaml").write_text(SPACE)
    with pytest.raises(SpecError, match="is a folder") as caught:
        Files().source(tmp_path)
    assert caught.value.hint == "name a file in it: space.yaml"


def test_the_last_word_of_a_name_stands_for_it_while_few_names_end_so():
    assert nearest("area", ["chip.area", "die.area"]) == "did you mean 'chip.area' or 'die.area'?"
    assert nearest("area", [f"part{number}.area" for number in range(9)]).startswith("valid: ")


def test_where_there_is_no_name_at_all_there_is_no_hint():
    assert str(SpecError("there is no such thing", hint=nearest("x", []))) == (
        "there is no such thing"
    )


def test_all_that_changed_in_a_study_is_told_at_once(tmp_path):
    (tmp_path / "space.yaml").write_text(SPACE)
    file = tmp_path / "study.yaml"
    file.write_text(STUDY)
    before = plan_of(file).identity
    file.write_text(STUDY.replace("10 s", "9 s").replace("  - minimize: bench.loss\n", ""))
    told = difference(before, plan_of(file, seed=5).identity)
    assert "evaluators.bench.options.timeout: '10 s' is now '9 s'" in told
    assert "objectives: " in told
    assert "seed: 0 is now 5" in told


def test_what_follows_from_another_space_is_not_told_beside_it(tmp_path):
    (tmp_path / "space.yaml").write_text(SPACE)
    (tmp_path / "study.yaml").write_text(STUDY)
    before = plan_of(tmp_path / "study.yaml").identity
    (tmp_path / "space.yaml").write_text(SPACE.replace("workers", "threads"))
    told = difference(before, plan_of(tmp_path / "study.yaml").identity)
    assert told.startswith("space: ")
    assert "workers is gone" in told
    assert "evaluators" not in told
    assert "order of parameters" not in told
