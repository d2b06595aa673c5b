"""What JSON says of trials that failed, of what is absent, unknown or wrong, and what it never says."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
from contextlib import closing

import numpy as np
import pytest
from jsonschema import Draft202012Validator, ValidationError
from typer.testing import CliRunner

from dse.cli.app import app, main
from dse.cli.json_schemas import schema
from dse.cli.options import show_json
from dse.core.trial import Ask
from dse.study.storage_access import opened_storage
from dse.study.study_engine import StudyEngine

URL = "sqlite:///dse.db"


@pytest.fixture
def dse(folder, monkeypatch, capsys):
    """What the program as a whole prints on either stream, and its exit code."""

    def ended(*words):
        monkeypatch.setattr(sys, "argv", ["dse", *words])
        with pytest.raises(SystemExit) as caught:
            main()
        return caught.value.code or 0, *capsys.readouterr()

    return ended


def test_failed_and_infeasible_trials_say_why_and_have_no_metrics(told):
    trials = told("trials", "odd")["trials"]
    failures = {t["design"]["mode"]: (t["state"], t["fault"], t["metrics"]) for t in trials}
    assert failures["broken"] == ("failed", {"kind": "raised", "reason": "it <smokes>"}, {})
    assert failures["impossible"][0] == "infeasible"
    assert failures["fine"][1] is None


def test_what_is_absent_in_a_design_has_no_key(told):
    designs = [trial["design"] for trial in told("trials", "odd")["trials"]]
    assert {"depth" in design for design in designs if design["mode"] != "fine"} == {False}


def test_an_unknown_objective_is_null(told):
    trials = told("trials", "odd")["trials"]
    assert [t["objectives"] for t in trials if t["fault"]] == [[None, None]] * 4


def test_states_and_failures_are_counted(told):
    status = told("status", "odd")
    assert status["trials"] == {"done": 8, "infeasible": 2, "failed": 2}
    assert status["failures"] == {"raised": 2, "infeasible": 2}
    assert status["drivers"][0]["left"] is True


def test_a_study_without_any_trial_has_an_empty_front(told):
    front = told("front", "empty")
    assert (front["front"], front["knee"], front["feasible"]) == ([], None, False)
    assert told("trials", "empty")["trials"] == []
    assert told("status", "empty")["trials"] == {}


def test_a_storage_without_studies_is_an_empty_list(told):
    assert told("status", "--storage", "memory://") == []
    assert told("studies", "list", "--storage", "memory://") == []


def test_the_nearest_misses_say_which_limit_they_break(told):
    front = told("front", "hopeless")
    assert front["feasible"] is False
    assert [row["broken"] for row in front["front"]] == [{"odd.time <= 0.5 s": 1.0}] * 2


def test_errors_of_metrics_scenarios_and_ladders_are_told_where_there_are_any(told):
    assert set(told("front", "odd")["membership"]) >= {"0"}
    assert "membership" not in told("front", "formulas")
    assert told("front", "formulas")["scenarios"]["weights"] == {"chat": 0.75, "batch": 0.25}
    (rung,) = told("front", "ladder")["fidelities"]
    assert (rung["metric"], rung["rung"]) == ("odd.loss", "rough.loss")


def test_a_metric_of_words_is_told_by_its_word(told):
    words = ["evaluate", "odd.yaml", "--set", "mode=fine", "--set", "rows=4"]
    assert told(*words)["metrics"]["odd.bottleneck"]["word"] == "memory"
    assert told("front", "odd")["words"] == {"odd.bottleneck": ["compute", "memory"]}
    assert told("trials", "formulas")["words"] == {}


def test_a_design_that_fails_is_told_with_exit_code_1(told):
    one = told("evaluate", "odd.yaml", "--set", "mode=broken", code=1)
    assert (one["state"], one["reason"], one["metrics"]) == ("failed", "it <smokes>", {})


def test_mistakes_in_files_are_the_result_of_a_check(told):
    fine, wrong = told("check", "odd.yaml", "wrong.yaml", code=2)
    assert (fine["ok"], fine["designs"], fine["measured"]) == (True, 12, ["odd"])
    assert wrong["errors"][0]["where"] == "wrong.yaml:8"
    assert "odd.time" in wrong["errors"][0]["hint"]


def test_a_claim_without_an_answer_has_no_number(told, folder):
    text = (folder / "formulas.yaml").read_text()
    (folder / "formulas.yaml").write_text(text.replace("rows < 9", "rows > 9"))
    (study,) = told("check", "--reproduce", "formulas.yaml", code=1)
    ours = [(one["ours"], one["verdict"]) for one in study["claims"]]
    assert ours == [(6.0, "accepted"), (None, "no answer")]


def test_designs_that_cannot_be_are_told_with_the_rules_against_them(told):
    one = told("space", "explain", "space.yaml", "--set", "rows=8", "--set", "mode=broken", code=1)
    assert (one["legal"], one["example"]) == (False, None)
    assert [rule["rule"] for rule in one["against"]] == ["mode == 'fine' or rows <= 2"]


def test_what_cannot_be_counted_is_null_with_the_reason(told):
    counted = told("space", "count", "free.yaml")
    assert counted["designs"] is None
    assert "clock" in counted["reason"]


def test_spaces_that_differ_end_with_exit_code_1(told):
    differing = told("space", "diff", "free.yaml", "wider.yaml", code=1)
    assert differing["same"] is False
    assert differing["fingerprints"]["old"] != differing["fingerprints"]["new"]


def test_a_trial_that_does_not_follow_from_its_record_is_told_with_both_designs(told):
    with closing(opened_storage(URL)) as storage:
        space = StudyEngine.load("formulas", storage).problem.space
        designs = space.sample(1, np.random.default_rng(9)).designs()
        storage.add("formulas", designs, Ask(told=6, wanted=1, by="random"))
    proof = told("verify", "formulas", code=1)
    assert (proof["proved"], proof["trials"], proof["mismatch"]["trial"]) == (False, 6, 6)
    assert proof["mismatch"]["expected"] != proof["mismatch"]["found"]


@pytest.mark.slow
def test_groups_are_compared_with_nulls_where_a_study_has_no_front(told):
    told("sweep", "formulas.yaml", "--seeds", "2", "--name", "swept")
    told("studies", "import", "kept.jsonl", "--name", "lone")
    groups = told("compare", "two=swept.*", "lone")["groups"]
    assert [len(group["studies"]) for group in groups] == [2, 1]
    _, empty = told("compare", "odd", "empty")["groups"]
    assert empty["at"]["epsilon"] == {"low": None, "median": None, "high": None}


def test_trials_outside_a_wider_space_are_counted(told):
    carried = told("studies", "migrate", "formulas", "wide_formulas.yaml")
    eights = sum(trial["design"]["rows"] == 8 for trial in told("trials", "formulas")["trials"])
    assert (carried["inside"], carried["outside"]) == (6 - eights, eights)
    assert eights > 0


def test_rows_that_cannot_be_taken_are_counted_by_why(told, folder):
    header, *rows = (folder / "kept.csv").read_text().splitlines()
    (folder / "kept.csv").write_text("\n".join([header, rows[0], rows[0]]) + "\n")
    words = ["--study", "formulas.yaml", "--name", "few"]
    new = told("studies", "import", "kept.csv", *words)
    assert (new["trials"], sum(new["left_out"].values())) == (1, 1)


@pytest.mark.slow
def test_an_asset_is_installed_found_and_removed(told):
    assert [one["new"] for one in told("assets", "install", "tiny")] == [True]
    assert [one["new"] for one in told("assets", "install", "tiny")] == [False]
    (place,) = told("assets", "where", "tiny")["places"]
    assert place["path"].endswith("tiny-1.0")
    assert told("assets", "remove", "tiny") == [{"name": "tiny", "removed": True}]
    assert told("assets", "remove", "tiny") == [{"name": "tiny", "removed": False}]


def test_a_file_of_json_says_what_is_printed(told, folder):
    CliRunner().invoke(app, ["front", "odd", "-o", "front.json"])
    assert json.loads((folder / "front.json").read_text()) == told("front", "odd")


def test_a_run_says_its_words_beside_its_result(folder):
    done = CliRunner().invoke(app, ["run", "odd.yaml", "--name", "new", "--format", "json"])
    assert json.loads(done.stdout)["reason"] in done.stderr
    assert "2 of 12 trials failed: it <smokes>" in done.stderr
    assert "2 of 12 trials ended infeasible: too hot" in done.stderr


def test_a_quiet_run_says_its_result_alone(folder):
    done = CliRunner().invoke(app, ["run", "odd.yaml", "--name", "new", "-q", "--format", "json"])
    assert json.loads(done.stdout)["study"] == "new"
    assert done.stderr == ""


def test_what_a_run_came_to_is_what_its_study_says(told):
    ended = told("run", "odd.yaml", "--name", "new")
    status, front = told("status", "new"), told("front", "new")
    assert {key: ended[key] for key in ("trials", "failures", "measurements")} == {
        key: status[key] for key in ("trials", "failures", "measurements")
    }
    assert ended["front"] == front["front"]
    assert ended["hypervolume"] == front["hypervolume"] == status["hypervolume"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "answers", "question"),
    [
        (["studies", "delete", "odd"], "y", "delete 'odd' and its 12 trials?"),
        (["init", "first"], "mine\nWhich?\nformula\n\n", "The study's name"),
    ],
    ids=["delete", "init"],
)
def test_a_question_is_asked_beside_the_result(folder, words, answers, question):
    command = [sys.executable, "-m", "dse", *words, "--format", "json"]
    done = subprocess.run(command, input=f"{answers}\n", capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["study"] in ("odd", "mine")
    assert question in done.stderr


@pytest.mark.parametrize(
    "words",
    [
        ["front", "nobody"],
        ["run", "wrong.yaml"],
        ["resume", "nobody"],
        ["compare", "odd", "formulas"],
        ["plugins", "show", "od"],
        ["studies", "delete", "nobody", "--yes"],
        ["space", "count", "odd.yaml"],
        ["assets", "where", "tiny"],
        ["effects", "odd", "--metric", "odd.tmie"],
    ],
    ids=" ".join,
)
def test_a_mistake_is_told_on_the_error_stream_alone(dse, words):
    code, result, said = dse(*words, "--format", "json")
    assert (code, result) == (2, "")
    assert said.startswith("error: ")


@pytest.mark.parametrize(
    "words",
    [["status"], ["compare", "odd"], ["evaluate", "odd.yaml"], ["check", "odd.yaml"]],
    ids=" ".join,
)
def test_a_format_that_a_command_has_not_is_refused(dse, words):
    code, result, said = dse(*words, "--format", "csv")
    assert (code, result) == (2, "")
    assert "'csv' is not one of" in said


def test_a_number_that_is_none_is_never_printed():
    with pytest.raises(ValueError, match="not JSON compliant"):
        show_json({"hypervolume": float("nan")})


@pytest.mark.parametrize("command", ["front", "trials", "verify", "compare"])
def test_a_key_that_is_not_published_is_refused(told, command):
    validator = Draft202012Validator(schema(command))
    value = told(command, "odd", *["empty"] * (command == "compare"))
    validator.validate(value)
    with pytest.raises(ValidationError, match="'surprise' was unexpected"):
        validator.validate({**value, "surprise": 1})


@pytest.mark.parametrize("command", ["front", "trials"])
def test_a_key_deep_inside_that_is_not_published_is_refused(told, command):
    value = copy.deepcopy(told(command, "odd"))
    value[command][0]["surprise"] = 1
    with pytest.raises(ValidationError, match="'surprise' was unexpected"):
        Draft202012Validator(schema(command)).validate(value)


@pytest.mark.parametrize("key", ["study", "hypervolume", "front"])
def test_a_key_that_is_published_may_not_be_missing(told, key):
    value = told("front", "odd")
    del value[key]
    with pytest.raises(ValidationError, match=f"'{key}' is a required property"):
        Draft202012Validator(schema("front")).validate(value)


def test_a_word_for_a_number_is_refused(told):
    value = told("trials", "odd")
    value["trials"][0]["cost_s"] = "NaN"
    with pytest.raises(ValidationError):
        Draft202012Validator(schema("trials")).validate(value)
