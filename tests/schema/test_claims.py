"""``reproduces:``: what claims may say, what their numbers are, and how mistakes are told."""

from __future__ import annotations

from pathlib import Path

import pytest

from dse.core.expressions.parser import parse
from dse.errors import SpecError, SpecErrors, StudyError
from dse.schema.study.plan import plan_of
from dse.storage.memory import MemoryStorage
from dse.study.study_engine import StudyEngine

SPACE = """
space: s
parameters:
  rows:   {ordinal: [1, 2, 4, 8]}
  format: {choice: [int8, int4]}
  group:  {ordinal: [32, 64], when: format == 'int4'}
"""

STUDY = """
study: claims
space: space.yaml
evaluators:
  chip: {use: expression, metrics: {energy: {formula: rows * 3 mJ, unit: mJ}, time: {formula: 8 s / rows, unit: s}}}
baselines:
  small: {rows: 1, format: int8}
  large: {rows: 8, format: int4, group: 64}
objectives:
  - minimize: chip.energy
  - minimize: chip.time
reference: {chip.energy: 30 mJ, chip.time: 10 s}
optimizer: random
budget: {trials: 12}
reproduces:
  - claim: what a paper says
    source: "Somebody, somewhere, table 1"
    published: a fact
    proof: direction
    ours: OURS
    accept: ACCEPT
unread: [format, group]
"""


def written(folder: Path, ours: str, accept: str = "ours < 1", text: str = STUDY) -> Path:
    (folder / "space.yaml").write_text(SPACE)
    path = folder / "study.yaml"
    path.write_text(text.replace("OURS", ours).replace("ACCEPT", accept))
    return path


# All twelve designs are done: three for each number of rows, two of them with a group.
NUMBERS = {
    "a baseline": ("baseline(chip.energy, small)", 3, "mJ"),
    "a ratio of baselines": ("baseline(chip.energy, large) / baseline(chip.energy, small)", 8, ""),
    "an expression of one": ("baseline(2 * chip.time + 1 s, large)", 3, "s"),
    "the least": ("least(chip.time)", 1, "s"),
    "the most": ("most(chip.energy)", 24, "mJ"),
    "the least of some": ("least(chip.energy, rows >= 4 and format == 'int8')", 12, "mJ"),
    "the least within a limit": ("least(chip.energy, chip.time <= 2000 ms)", 12, "mJ"),
    "the mean": ("mean(chip.energy)", 11.25, "mJ"),
    "the mean of what has a group": ("mean(group, rows == 1)", 48, ""),
    "a standard error": ("stderr(chip.energy, rows <= 2)", 0.45**0.5, "mJ"),  # 3, 3, 3, 6, 6, 6
    "a count": ("count(rows == 1)", 3, ""),
    "a count of what is absent": ("count(group is absent)", 4, ""),
    "a share": ("count(rows == 1) / count(rows >= 1)", 0.25, ""),
    "opposite orders": ("spearman(chip.energy, chip.time)", -1, ""),
    "the volume of the front": ("hypervolume()", 27 * 2 + 24 * 4 + 18 * 2 + 6 * 1, ""),
    "units of one dimension": ("least(chip.energy) + 1 J", 1003, "mJ"),
    "a difference in size": ("abs(least(rows) - most(rows))", 7, ""),
}


@pytest.mark.parametrize("case", NUMBERS)
def test_the_number_of_a_claim_is_gathered_from_the_trials(tmp_path, case):
    text, number, unit = NUMBERS[case]
    bare = "ours > 0" if not unit else f"ours > 0 {unit}"
    study = StudyEngine.open(written(tmp_path, text, bare), storage=MemoryStorage("memory://"))
    study.run()
    (claim,) = study.plan.claims
    assert claim.ours(study.problem, study.trials) == pytest.approx(number)
    assert claim.unit == unit


ACCEPTED = {
    "in its own unit": ("ours < 4 mJ", True),
    "in another prefix": ("2.9e-3 J < ours < 3.1e-3 J", True),
    "not met": ("ours > 4 mJ", False),
    "two rules": ("ours > 4 mJ or ours < 1 J", True),
}


@pytest.mark.parametrize("case", ACCEPTED)
def test_a_claim_holds_where_its_rule_does(tmp_path, case):
    accept, holds = ACCEPTED[case]
    (claim,) = plan_of(written(tmp_path, "least(chip.energy)", accept)).claims
    assert claim.holds(3.0) is holds


NO_ANSWERS = {
    "no trial fits": ("least(chip.energy, rows > 8) / 1 mJ", "none of 12 trials fits"),
    "nothing to rank": ("spearman(chip.energy, rows * 0)", "numbers that differ"),
    "absent of the baseline": ("baseline(group, small)", "for the baseline 'small' there is no"),
    "divided by nothing": ("count(rows == 1) / count(rows > 8)", "comes to inf"),
}


@pytest.mark.parametrize("case", NO_ANSWERS)
def test_a_number_that_the_trials_do_not_yield_is_told_in_words(tmp_path, case):
    text, words = NO_ANSWERS[case]
    study = StudyEngine.open(written(tmp_path, text), storage=MemoryStorage("memory://"))
    study.run()
    (claim,) = study.plan.claims
    with pytest.raises(StudyError, match=words):
        claim.ours(study.problem, study.trials)


def test_a_study_that_has_not_run_has_no_answer(tmp_path):
    plan = plan_of(written(tmp_path, "least(chip.time) / 1 s"))
    (claim,) = plan.claims
    with pytest.raises(StudyError, match="no trial is done"):
        claim.ours(plan.problem, [])


def test_a_baseline_that_was_not_measured_is_named(tmp_path):
    plan = plan_of(written(tmp_path, "baseline(rows, large)"))
    (claim,) = plan.claims
    with pytest.raises(StudyError, match="the baseline 'large' has no trial: the budget"):
        claim.ours(plan.problem, [])


MISTAKES = {
    "unknown metric": ("least(chip.enrgy)", "ours < 1", ":20", "did you mean 'chip.energy'"),
    "unknown metric in a condition": ("count(chip.tim > 1 s)", "ours < 1", ":20", "'chip.time'"),
    "unknown baseline": ("baseline(chip.time, smal)", "ours < 1 s", ":20", "did you mean 'small'"),
    "unknown function": ("last(chip.time)", "ours < 1 s", ":20", "did you mean 'least'"),
    "a number of each design": ("chip.time", "ours < 1 s", ":20", "least(chip.time)"),
    "no trial is read": ("3 + 4", "ours < 1", ":20", "reads no trial"),
    "a word": ("least(format)", "ours < 1", ":20", "a word is no quantity"),
    "no condition": ("least(chip.time, rows + 1)", "ours < 1 s", ":20", "a condition is required"),
    "a rule": ("count(rows == 1) > 3", "ours < 1", ":20", "is a rule and no quantity"),
    "units of ours": ("least(chip.time) + least(chip.energy)", "ours < 1", ":20", "does not go"),
    "units of the condition": ("count(chip.time > 1 mJ)", "ours < 1", ":20", "does not go with"),
    "units of the rule": ("least(chip.time)", "ours < 1 mJ", ":21", "does not go with"),
    "a rule over others": ("least(chip.time)", "chip.time < 1 s", ":21", "not 'chip.time'"),
    "a rule without ours": ("least(chip.time)", "1 < 2", ":21", "does not use 'ours'"),
    "no rule": ("least(chip.time)", "ours + 1 s", ":21", "accepts nothing"),
    "arguments for the volume": ("hypervolume(3)", "ours < 1", ":20", "was given 1 arguments"),
}


@pytest.mark.parametrize("case", MISTAKES)
def test_a_claim_that_cannot_be_judged_is_told_with_its_line(tmp_path, case):
    ours, accept, line, words = MISTAKES[case]
    with pytest.raises(SpecErrors) as caught:
        plan_of(written(tmp_path, ours, accept))
    assert f"study.yaml{line}" in str(caught.value)
    assert words in str(caught.value)


def test_an_unknown_kind_of_proof_is_answered_with_those_that_there_are(tmp_path):
    path = written(tmp_path, "least(rows)", text=STUDY.replace("direction\n", "directly\n"))
    with pytest.raises(SpecErrors, match=r"(?s)study.yaml:19.*'directly'.*'held-out'"):
        plan_of(path)


def test_only_what_did_not_come_out_may_do_without_a_rule(tmp_path):
    text = STUDY.replace("    accept: ACCEPT\n", "")
    with pytest.raises(SpecErrors, match="needs a condition"):
        plan_of(written(tmp_path, "least(rows)", text=text))
    path = written(tmp_path, "least(rows)", text=text.replace("direction", "not reproduced"))
    (claim,) = plan_of(path).claims
    assert claim.holds(1.0) is None


def test_mistakes_of_claims_and_of_objectives_are_told_together(tmp_path):
    text = STUDY.replace("minimize: chip.time", "minimize: chip.tme")
    with pytest.raises(SpecErrors) as caught:
        plan_of(written(tmp_path, "least(chip.enrgy)", text=text))
    assert [error.where.rpartition(":")[2] for error in caught.value.errors] == ["11", "20"]


def test_a_study_is_gone_on_with_although_its_claims_changed(tmp_path):
    storage = MemoryStorage("memory://")
    StudyEngine.open(written(tmp_path, "least(rows)"), storage=storage).run()
    again = StudyEngine.open(written(tmp_path, "most(rows)"), storage=storage)
    (claim,) = again.plan.claims
    assert claim.ours(again.problem, again.trials) == 8


def test_only_a_function_that_takes_nothing_may_be_called_with_nothing():
    with pytest.raises(SpecError, match="expected a number"):
        parse("sum()")
