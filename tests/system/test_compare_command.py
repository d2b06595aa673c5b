"""``dse compare`` over studies, groups and files, from the command line to its exit code."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from dse.cli.app import app
from dse.study.study_engine import StudyEngine

SPACE = """
space: s
parameters:
  x: {real: [0, 1]}
  y: {real: [0, 1]}
"""

STUDY = """
study: one
space: space.yaml
evaluators:
  m:
    use: expression
    metrics:
      a: {formula: 1 s * x + 1 s * y, unit: s}
      b: {formula: 1 J * (1 - x) + 1 J * y, unit: J}
objectives:
  - minimize: m.a
  - minimize: m.b
reference: {m.a: 2 s, m.b: 2 J}
optimizer: random
budget: {trials: 12}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two kinds of studies of three seeds each: of the whole space, and of its worse half."""
    here = tmp_path_factory.mktemp("studies")
    (here / "space.yaml").write_text(SPACE)
    (here / "one.yaml").write_text(STUDY)
    (here / "sobol.yaml").write_text(STUDY.replace("random", "sobol"))
    (here / "far.yaml").write_text(STUDY.replace("m.a: 2 s", "m.a: 3 s"))
    (here / "wide.yaml").write_text(STUDY.replace("space.yaml", "wide.yaml.space"))
    (here / "wide.yaml.space").write_text(SPACE.replace("x: {real: [0, 1]}", "x: {real: [0, 2]}"))
    (here / "free.yaml").write_text(STUDY.replace("reference: {m.a: 2 s, m.b: 2 J}", ""))
    url = f"sqlite:///{here}/dse.db"
    made = [("one", 0), ("one", 1), ("one", 2), ("sobol", 0), ("sobol", 1), ("sobol", 2)]
    made += [("far", 0), ("wide", 0), ("free", 0), ("free", 1)]
    studies = [
        StudyEngine.open(here / f"{file}.yaml", name=f"{file}.{seed}", storage=url, seed=seed)
        for file, seed in made
    ]
    assert {study.run() for study in studies}
    return here


@pytest.fixture
def told(folder, monkeypatch):
    """What the command answers in that folder."""
    monkeypatch.chdir(folder)
    return lambda *words: CliRunner().invoke(app, ["compare", *words])


def answer(result):
    return json.loads(result.stdout)


def members(result) -> dict[str, list[str]]:
    return {
        group["name"]: [study["study"] for study in group["studies"]]
        for group in answer(result)["groups"]
    }


def test_studies_by_name_stand_alone(told):
    found = told("one.0", "one.1", "--format", "json")
    assert members(found) == {"one.0": ["one.0"], "one.1": ["one.1"]}


def test_a_pattern_makes_groups_of_those_that_differ_in_their_seed_alone(told):
    found = told("[os]*.[012]", "--joint-reference", "--format", "json")
    assert members(found) == {
        "one": ["one.0", "one.1", "one.2"],
        "sobol": ["sobol.0", "sobol.1", "sobol.2"],
    }


def test_a_named_pattern_is_one_group(told):
    found = told("mine=one.*", "theirs=sobol.[01]", "--format", "json")
    assert members(found) == {
        "mine": ["one.0", "one.1", "one.2"],
        "theirs": ["sobol.0", "sobol.1"],
    }


def test_seeds_in_common_are_compared_in_pairs(told):
    found = answer(told("mine=one.*", "theirs=sobol.*", "--format", "json"))
    assert {claim["test"] for claim in found["claims"]} == {"wilcoxon"}


def test_an_exported_study_compares_as_the_study_itself(told, folder):
    exported = CliRunner().invoke(app, ["studies", "export", "one.1", "-o", "file.jsonl"])
    assert exported.exit_code == 0
    found = answer(told("one.1", "file.jsonl", "--format", "json"))
    study, file = (group["studies"][0] for group in found["groups"])
    assert {**file, "study": "one.1"} == study


@pytest.mark.parametrize("ending", ["html", "json"])
def test_a_comparison_can_be_a_file(told, folder, ending):
    assert told("one.0", "sobol.0", "-o", f"c.{ending}").exit_code == 0
    assert "sobol.0" in (folder / f"c.{ending}").read_text()


def test_a_table_is_no_file(told):
    found = told("one.0", "sobol.0", "-o", "c.txt")
    assert "cannot be written as .txt" in str(found.exception)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["one.0", "far.0"], "their reference points differ"),
        (["one.0", "wide.0"], "their spaces differ"),
        (["free.0", "free.1"], "no reference point"),
        (["one.0", "two.*"], "no study 'two.*'"),
        (["one.0", "one.0"], "'one.0' is there twice"),
        (["one.0", "--fail-if-worse", "much"], "'much' is not a share"),
        (["one.0", "--fail-if-worse", "120%"], "not from 0 % to below 100 %"),
        (["one.0", "sobol.0", "--budget-axis", "cost"], "cannot be compared over cost"),
        (
            ["one.0", "sobol.0", "--budget-axis", "measurements"],
            "cannot be compared over measurements",
        ),
        (["no.jsonl"], "no.jsonl cannot be read"),
    ],
)
def test_what_cannot_be_compared_is_refused_with_the_reason(told, words, says):
    assert says in str(told(*words).exception)


@pytest.mark.parametrize(
    "words",
    [
        ["one.0", "far.0", "--joint-reference"],
        ["one.0", "wide.0", "--ignore", "space", "--budget", "5"],
        ["free.0", "free.1", "--joint-reference"],
        ["one.0", "sobol.0", "--budget-axis", "seconds"],
        ["one.0", "sobol.0", "--indicator", "r2", "--indicator", "igd+"],
    ],
)
def test_there_is_a_way_out_where_there_can_be_one(told, words):
    assert told(*words).exit_code == 0


def best_and_worst(told) -> tuple[str, str]:
    groups = answer(told("one.0", "one.1", "one.2", "--format", "json"))["groups"]
    ranked = sorted(groups, key=lambda one: one["at"]["hypervolume"]["median"])
    return ranked[-1]["name"], ranked[0]["name"]


def test_a_candidate_that_is_too_much_worse_ends_with_one(told):
    best, worst = best_and_worst(told)
    found = told(best, worst, "--fail-if-worse", "0.01%")
    assert found.exit_code == 1
    assert f"{worst} falls short of {best}" in found.stderr


def test_a_candidate_that_is_better_or_little_worse_ends_with_nought(told):
    best, worst = best_and_worst(told)
    assert told(worst, best, "--fail-if-worse", "0%").exit_code == 0
    assert told(best, worst, "--fail-if-worse", "99%").exit_code == 0


def test_the_gate_needs_a_claim_about_hypervolume_and_makes_it(told):
    best, worst = best_and_worst(told)
    found = told(best, worst, "--fail-if-worse", "0.01%", "--indicator", "r2")
    assert found.exit_code == 1


def test_volumes_are_shares_between_one_reference_and_one_ideal_point(told):
    found = answer(told("one.0", "sobol.0", "--format", "json"))
    box = 1.0
    for worst, best in zip(found["reference_point"], found["ideal_point"], strict=True):
        box *= worst - best
    studies = [group["studies"][0] for group in found["groups"]]
    volumes = [study["final"]["hypervolume"] for study in studies]
    assert volumes == pytest.approx([box * one["final_hypervolume_share"] for one in studies])
    assert found["groups"][0]["hypervolume_share"]["median"] == studies[0]["hypervolume_share"]
    assert "percentage points" in found["verdicts"][0]
