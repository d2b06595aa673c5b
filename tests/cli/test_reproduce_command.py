"""``dse check --reproduce``: what it prints, keeps and ends with."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dse.api.reproduce import reproduce as reproduce_in_python
from dse.cli.app import app
from dse.errors import SpecErrors, StudyError
from dse.schema.study.plan import plan_of
from dse.services.studies.html_report import report_text
from dse.study.study_engine import StudyEngine

SPACE = """
space: s
parameters:
  rows: {ordinal: [1, 2, 4, 8]}
"""

STUDY = """
study: claims
space: space.yaml
evaluators:
  chip: {use: expression, metrics: {energy: {formula: rows * 3 mJ, unit: mJ}}}
baselines:
  small: {rows: 1}
optimizer: random
budget: {trials: 4}
objectives:
  - minimize: chip.energy
"""

HOLDS = """
  - claim: four rows take four times the energy
    source: "Somebody, table 1"
    published: 4x
    proof: exact
    ours: least(chip.energy, rows == 4) / baseline(chip.energy, small)
    accept: ours == 4
"""
FALLS_SHORT = HOLDS.replace("ours == 4", "ours == 5").replace("four rows", "our rows")
OFF = """
  - claim: it is free
    source: "Somebody, table 2"
    published: nothing
    proof: not reproduced
    ours: least(chip.energy)
    note: the least is what one row takes
"""
UNTOLD = OFF.replace("least(chip.energy)", "least(chip.energy, rows > 8)")


def written(folder: Path, *claims: str) -> str:
    (folder / "space.yaml").write_text(SPACE)
    path = folder / "study.yaml"
    path.write_text(STUDY + ("reproduces:" + "".join(claims) if claims else ""))
    return str(path)


def reproduce(*words: str):
    return CliRunner().invoke(app, ["check", "--reproduce", *words])


def test_a_claim_that_holds_is_printed_with_its_number_and_ends_well(tmp_path):
    result = reproduce(written(tmp_path, HOLDS))
    assert result.exit_code == 0
    row = next(line for line in result.stdout.splitlines() if "four rows" in line)
    assert row.split()[-4:] == ["4x", "4", "exact", "accepted"]


def test_a_claim_that_does_not_hold_ends_with_exit_code_1(tmp_path):
    result = reproduce(written(tmp_path, HOLDS, FALLS_SHORT))
    assert result.exit_code == 1
    assert "1 reproduced (1 exact)" in result.stdout
    assert result.stdout.endswith("; 1 not as labelled\n")


def test_what_did_not_come_out_is_shown_with_its_unit_and_fails_nothing(tmp_path):
    result = reproduce(written(tmp_path, OFF))
    assert result.exit_code == 0
    assert "3 mJ" in result.stdout
    assert "1 not reproduced" in result.stdout


def test_a_claim_without_an_answer_is_told_in_words_and_ends_with_exit_code_1(tmp_path):
    result = reproduce(written(tmp_path, UNTOLD))
    assert result.exit_code == 1
    assert "it is free: none of 4 trials fits least(...)" in result.stderr


def test_machines_read_claims_as_json(tmp_path):
    result = reproduce(written(tmp_path, HOLDS, OFF), "--format", "json")
    (told,) = json.loads(result.stdout)
    holds, off = told["claims"]
    assert (holds["ours"], holds["unit"], holds["verdict"]) == (4.0, "", "accepted")
    assert (off["ours"], off["unit"], off["holds"]) == (3.0, "mJ", None)
    assert off["note"] == "the least is what one row takes"


def test_a_storage_keeps_what_was_reproduced(tmp_path):
    url = f"sqlite:///{tmp_path}/kept.db"
    reproduce(written(tmp_path, HOLDS), "--storage", url)
    assert len(StudyEngine.load("claims", url).trials) == 4


def test_without_a_storage_nothing_is_kept(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    reproduce(written(tmp_path, HOLDS))
    assert {path.name for path in tmp_path.iterdir()} == {"space.yaml", "study.yaml"}


def test_a_study_that_exists_as_another_question_is_told_for_each_claim(tmp_path):
    url = f"sqlite:///{tmp_path}/kept.db"
    reproduce(written(tmp_path, HOLDS), "--storage", url)
    path = Path(written(tmp_path, HOLDS))
    path.write_text(path.read_text().replace("rows * 3 mJ", "rows * 2 mJ"))
    result = reproduce(str(path), "--storage", url)
    assert result.exit_code == 1
    assert "exists and asks something else" in result.stderr


def test_a_study_without_claims_is_refused_before_anything_runs(tmp_path):
    result = reproduce(written(tmp_path))
    assert isinstance(result.exception, StudyError)
    assert "states no claims" in str(result.exception)


def test_a_mistake_in_one_file_ends_all_before_anything_runs(tmp_path):
    (tmp_path / "good").mkdir()
    good = written(tmp_path / "good", HOLDS)
    bad = written(tmp_path, HOLDS.replace("small)", "smal)"))
    result = reproduce(good, bad)
    assert isinstance(result.exception, SpecErrors)
    assert result.stdout == ""


def test_a_plain_check_counts_the_claims_and_finds_their_mistakes(tmp_path):
    assert "2 claims" in CliRunner().invoke(app, ["check", written(tmp_path, HOLDS, OFF)]).stdout
    bad = written(tmp_path, HOLDS.replace("chip.energy,", "chip.enrgy,"))
    result = CliRunner().invoke(app, ["check", bad])
    assert result.exit_code == 2
    assert "study.yaml:17" in result.stderr


def test_claims_are_no_parquet(tmp_path):
    result = reproduce(written(tmp_path, HOLDS), "--format", "parquet")
    assert result.exit_code == 2
    assert "'parquet' is not one of" in result.stderr


@pytest.mark.parametrize("file", ["space.yaml"])
def test_a_space_has_no_claims(tmp_path, file):
    written(tmp_path, HOLDS)
    assert isinstance(reproduce(str(tmp_path / file)).exception, SpecErrors)


MEASURED = """
study: measured
space: space.yaml
evaluators:
  board: {use: command, run: [PYTHON, -S, -E, board.py], reads: [rows], metrics: {time: s}}
baselines:
  small: {rows: 1}
  large: {rows: 8}
objectives:
  - minimize: board.time
optimizer: random
budget: {measurements: BUDGET}
reproduces:
  - claim: eight rows take eight times as long
    source: "Somebody, table 3"
    published: 8x
    proof: free
    ours: baseline(board.time, large) / baseline(board.time, small)
    accept: ours == 8
  - claim: and nothing else is measured
    source: "the budget"
    published: 2
    proof: exact
    ours: count(rows >= 1)
    accept: ours == 2
"""


def measured(folder: Path, budget: int) -> str:
    written(folder)
    answer = 'import json, sys; print(json.dumps({"time": json.load(sys.stdin)["rows"] * 3}))'
    (folder / "board.py").write_text(answer)
    text = MEASURED.replace("PYTHON", sys.executable).replace("BUDGET", str(budget))
    (folder / "study.yaml").write_text(text)
    return str(folder / "study.yaml")


def test_a_budget_of_as_many_measurements_measures_the_baselines_alone(tmp_path):
    result = reproduce(measured(tmp_path, 2))
    assert result.exit_code == 0
    assert "2 reproduced (1 exact, 1 free)" in result.stdout


def test_a_baseline_that_the_budget_leaves_out_is_named(tmp_path):
    result = reproduce(measured(tmp_path, 1))
    assert result.exit_code == 1
    assert "the baseline 'large' has no trial: the budget has no room for it" in result.stderr


def test_a_study_whose_evaluator_fails_says_why_there_is_no_answer(tmp_path):
    path = measured(tmp_path, 2)
    (tmp_path / "board.py").write_text("raise SystemExit('no board is plugged in')")
    result = reproduce(path)
    assert result.exit_code == 1
    assert "no board is plugged in" in result.stderr


def test_a_storage_is_for_what_runs(tmp_path):
    words = ["check", written(tmp_path, HOLDS), "--storage", "memory://"]
    assert CliRunner().invoke(app, words).exit_code == 2


DIFFERS = HOLDS.replace("published: 4x", "published: 34 %").replace(
    "proof: exact", "proof: direction"
)
DIFFERS = DIFFERS.replace("/ baseline(chip.energy, small)", "/ 1 J").replace(
    "ours == 4", "ours > 0"
)
AFTER_ALL = OFF.replace("    note", "    accept: ours < 4 mJ\n    note")
FINDS = """
finds:
  - claim: one row takes 3 mJ
    ours: least(chip.energy)
    accept: 2 mJ < ours < 4 mJ
"""
SAME = HOLDS.replace("proof: exact", "proof: identity").replace(
    "four rows take", "by definition it is"
)


def test_a_size_that_is_not_that_of_print_is_reported_and_counted_apart(tmp_path):
    result = reproduce(written(tmp_path, DIFFERS))
    assert result.exit_code == 0
    assert "direction holds, size differs (ours 1.2 %, print 34 %)" in result.stderr
    assert "0 reproduced, 0 direction only, 1 size differs" in result.stdout


def test_what_holds_after_all_asks_for_another_label(tmp_path):
    result = reproduce(written(tmp_path, AFTER_ALL))
    assert result.exit_code == 1
    assert "it is free: now holds: change the label" in result.stderr
    assert "0 not reproduced; 0 findings, 0 identities; 1 not as labelled" in result.stdout


def test_findings_and_identities_stand_apart_and_reproduce_nothing(tmp_path):
    result = reproduce(written(tmp_path, SAME, FINDS))
    assert result.exit_code == 0
    assert "0 reproduced, 0 direction only, 0 size differs, 0 not reproduced" in result.stdout
    assert result.stdout.endswith("; 1 finding, 1 identity\n")
    (told,) = json.loads(reproduce(written(tmp_path, SAME, FINDS), "--format", "json").stdout)
    assert [one["counts_as"] for one in told["claims"]] == ["identity", "finding"]
    assert (told["summary"]["findings"], told["summary"]["identities"]) == (1, 1)


def test_a_study_of_findings_alone_is_judged(tmp_path):
    path = Path(written(tmp_path, FINDS))
    path.write_text(path.read_text().replace("reproduces:", ""))
    assert reproduce(str(path)).exit_code == 0


ASSUMED = """
assumes:
  - name: energy of a row
    value: rows * 3 mJ
    interval: [rows * 2 mJ, rows ** 2 * 3 mJ]
    turns: chip.metrics.energy.formula
    source: measured between both
"""


def test_assumptions_are_turned_to_both_ends_and_what_falls_is_named(tmp_path):
    path = written(tmp_path, HOLDS, FINDS, ASSUMED)
    url = f"sqlite:///{tmp_path}/kept.db"
    result = reproduce(path, "--assumptions", "--storage", url)
    assert result.exit_code == 0
    lost = "over some of the ends (1 of 2), not where energy of a row = rows ** 2 * 3 mJ: 16"
    assert lost in result.stderr
    assert "one row takes 3 mJ: over some of the ends (1 of 2)" in result.stderr
    (told,) = json.loads(reproduce(path, "--assumptions", "--format", "json").stdout)
    assert told["assumes"][0]["interval"] == ["rows * 2 mJ", "rows ** 2 * 3 mJ"]
    ratio = told["claims"][0]["turned"]
    assert [(one["ours"], one["passes"]) for one in ratio] == [(4.0, True), (16.0, False)]
    in_python = reproduce_in_python(path, assumptions=True)[0].turned
    assert [(one.ours, one.passes) for one in in_python] == [(4.0, True), (16.0, False)]
    report = report_text(StudyEngine.load("claims", url))
    assert "What was claimed, and what came out" in report
    assert "over some of the ends (1 of 2)" in report


def test_a_size_that_is_lost_at_an_end_counts_as_lost(tmp_path):
    sized = HOLDS.replace("proof: exact", "proof: direction").replace("ours == 4", "ours > 1")
    path = written(tmp_path, sized, ASSUMED)
    (told,) = json.loads(reproduce(path, "--assumptions", "--format", "json").stdout)
    (claim,) = told["claims"]
    assert claim["counts_as"] == "direction only"
    ends = [(one["counts_as"], one["passes"]) for one in claim["turned"]]
    assert ends == [("direction only", True), ("size differs", False)]


def test_an_end_that_cannot_be_is_told_as_no_answer_there(tmp_path):
    end = ASSUMED.replace("[rows * 2 mJ, rows ** 2 * 3 mJ]", "[rows * 3 mJ, 1 / (rows - 1) mJ]")
    (told,) = json.loads(
        reproduce(written(tmp_path, HOLDS, end), "--assumptions", "--format", "json").stdout
    )
    (turned,) = told["claims"][0]["turned"]
    assert (turned["ours"], turned["passes"]) == (None, False)
    assert turned["reason"]


def test_assumptions_are_for_what_runs(tmp_path):
    words = ["check", written(tmp_path, HOLDS, ASSUMED), "--assumptions"]
    assert CliRunner().invoke(app, words).exit_code == 2


def test_a_plain_check_finds_an_end_at_which_the_study_cannot_be(tmp_path):
    end = ASSUMED.replace("chip.metrics.energy.formula", "baselines.small.rows")
    end = end.replace("rows * 3 mJ", "1").replace("[rows * 2 mJ, rows ** 2 * 3 mJ]", "[1, 3]")
    path = written(tmp_path, HOLDS, end)
    assert plan_of(Path(path)).assumptions
    result = CliRunner().invoke(app, ["check", path])
    assert result.exit_code == 2
    assert "study.yaml:23: the study cannot be run where 'energy of a row' is 3" in result.stderr
    legal = Path(path).read_text().replace("[1, 3]", "[1, 4]")
    Path(path).write_text(legal)
    assert "1 claim, 1 assumption" in CliRunner().invoke(app, ["check", path]).stdout
