"""``dse choose`` and ``study.choose``: questions, recorded answers, the favourite."""

from __future__ import annotations

import json
import shutil

import pytest
from typer.testing import CliRunner

from dse import Study
from dse.cli.app import app
from dse.core.preference_answers import read_answers
from dse.errors import DseError, SpecError
from dse.services.studies.recorded_preferences import Preferences
from dse.study.study_engine import StudyEngine


@pytest.fixture
def copied(folder, tmp_path, monkeypatch):
    """Folder with a copy of the studies, in which answers can be recorded."""
    shutil.copy(folder / "dse.db", tmp_path / "dse.db")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def choose(copied):
    """Function that runs ``dse choose tiny`` with some words and lines of input."""
    return lambda *words, **options: CliRunner().invoke(app, ["choose", "tiny", *words], **options)


@pytest.fixture
def study(copied):
    return Study.load("tiny", f"sqlite:///{copied}/dse.db")


def facts(result):
    assert result.exit_code == 0, result.exception
    return json.loads(result.stdout)


def front_numbers(study):
    return [trial.number for trial in study.front]


def test_a_user_of_cost_alone_gets_the_cheapest_design(study):
    def cheaper(first, second):
        return "first" if first.metrics["m.cost"] < second.metrics["m.cost"] else "second"

    found = study.choose(cheaper)
    assert found.trial.metrics["m.cost"] == 1.0
    assert found.probability > 0.5
    assert study.favourite() == found


def test_a_question_shows_two_designs_of_the_front_side_by_side(choose, study):
    told = choose(input="q\n").stdout
    assert "question 1 of at most 8" in told
    assert "delay (minimize)" in told
    assert "m.cost (minimize)" in told
    assert "rich" not in told.partition("favourite")[0]  # the same in both
    assert "favourite after 0 answers: trial" in told


def test_each_answer_is_stored_before_the_next_question(choose, study):
    choose(input="1\n2\n")  # and the input ends
    assert [one.number for one in read_answers(study.engine.events)] == [1, 2]


def test_an_answer_that_is_none_is_asked_again_and_a_skipped_pair_is_not(choose, study):
    told = choose("--questions", "2", input="x\ns\ns\n").stdout
    assert "'x' is no answer" in told
    assert "question 2 of at most 2" in told
    first, second = told.split("question 2")
    assert [line for line in first.splitlines() if "1: trial" in line] != [
        line for line in second.splitlines() if "1: trial" in line
    ]
    assert read_answers(study.engine.events) == ()


def test_an_interrupt_keeps_the_answers(study):
    def impatient(first, second):
        if read_answers(study.engine.events):
            raise KeyboardInterrupt
        return "first"

    with pytest.raises(KeyboardInterrupt):
        study.choose(impatient)
    assert len(read_answers(study.engine.events)) == 1


def test_scripts_read_the_question_and_record_the_answer(choose):
    question = facts(choose("--format", "json"))["question"]
    first, second = (row["trial"] for row in question)
    told = facts(choose("--prefer", f"{second}:{first}", "--format", "json"))
    assert told["answers"] == [
        {"answer": 1, "preferred": second, "other": first, "equal": False, "used": True}
    ]
    assert {row["trial"] for row in told["question"]} != {first, second}


def test_answers_are_listed_and_withdrawn(choose, study):
    a, b, c = front_numbers(study)[:3]
    choose("--prefer", f"{a}:{b}", "--prefer", f"{b}={c}")
    assert f"answer 2: trial {b} is as good as trial {c}" in choose("--list").stdout
    before = facts(choose("--format", "json"))
    assert (
        f"withdrawn: answer 1, trial {a} is preferred to trial {b}"
        in choose("--forget", "1").stdout
    )
    after = facts(choose("--format", "json"))
    assert [one["answer"] for one in before["answers"]] == [1, 2]
    assert [one["answer"] for one in after["answers"]] == [2]
    assert before["probability"] != after["probability"]


def test_of_two_answers_on_a_pair_the_later_one_counts(choose, study):
    a, b = front_numbers(study)[:2]
    told = facts(choose("--prefer", f"{a}:{b}", "--prefer", f"{b}:{a}", "--format", "json"))
    assert [(one["answer"], one["preferred"]) for one in told["answers"]] == [(2, b)]


def test_an_answer_on_a_design_that_is_dominated_counts_too(study):
    worse = next(t.number for t in study.trials if t.design["rich"] == 1)
    a = front_numbers(study)[0]
    study.prefer(a, worse)
    told = Preferences.of(study.engine)
    assert told.unused == ()
    assert told.favourite.trial.number in front_numbers(study)


def test_answers_survive_export_and_import(choose, copied, study):
    a, b = front_numbers(study)[:2]
    choose("--prefer", f"{a}:{b}")
    run = CliRunner().invoke
    assert run(app, ["studies", "export", "tiny", "-o", "tiny.jsonl"]).exit_code == 0
    assert run(app, ["studies", "import", "tiny.jsonl", "--name", "theirs"]).exit_code == 0
    theirs = StudyEngine.load("theirs", f"sqlite:///{copied}/dse.db")
    assert read_answers(theirs.events) == read_answers(study.engine.events) != ()


def test_the_same_answers_lead_to_the_same_question(choose):
    assert facts(choose("--format", "json")) == facts(choose("--format", "json"))


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--prefer", "3"], "3:7"),
        (["--prefer", "a:b"], "3:7"),
        (["--prefer", "-1:2"], "3:7"),
        (["--prefer", "3:3"], "cannot be compared with itself"),
        (["--prefer", "3:99"], "valid: 0 to 11"),
        (["--forget", "4"], "no answer is recorded"),
    ],
)
def test_a_mistake_in_an_option_has_a_hint_and_records_nothing(choose, study, words, says):
    found = choose(*words)
    assert isinstance(found.exception, DseError)
    assert says in str(found.exception)
    assert read_answers(study.engine.events) == ()


def test_an_answer_of_another_kind_is_refused(study):
    with pytest.raises(SpecError, match="return one of first, second, equal, or None"):
        study.choose(lambda first, second: first)
