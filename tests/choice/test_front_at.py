"""``dse front --at ... --best ...`` and ``study.front_at``: the best designs under further limits."""

from __future__ import annotations

import csv
import json

import pytest

from dse import Study


@pytest.fixture
def designs(command):
    """Function that returns the designs of ``dse front`` with some options."""

    def told(*words):
        rows = json.loads(command("front", "tiny", *words, "--format", "json").stdout)["front"]
        return [(row["design"]["n"], row["design"]["rich"]) for row in rows]

    return told


def test_a_limit_on_an_objective_keeps_that_part_of_the_front(designs):
    assert designs("--at", "m.latency <= 20 ms") == [(6, 0), (5, 0), (4, 0), (3, 0)]


def test_a_label_of_an_objective_can_be_used_in_a_limit(designs):
    assert designs("--at", "delay <= 20 ms") == designs("--at", "m.latency <= 0.02 s")


def test_a_limit_on_another_metric_makes_a_front_of_designs_that_were_dominated(designs):
    assert designs("--at", "m.area <= 2 mm2", "--at", "delay <= 12 ms") == [(6, 1), (5, 1)]


def test_the_limits_of_the_study_still_hold(designs):
    assert (1, 1) in designs("--at", "m.area <= 5 mm2")
    assert designs("--best", "maximize: m.area") == [(1, 0)]


def test_the_best_by_an_objective_under_a_limit(designs):
    assert designs("--at", "delay <= 20 ms", "--best", "m.cost") == [(3, 0)]


def test_the_best_by_a_metric_that_is_no_objective(designs):
    assert designs("--best", "minimize: m.area + 0 mm2") == [
        (6, 1),
        (5, 1),
        (4, 1),
        (3, 1),
        (2, 1),
        (1, 1),
    ]


def test_a_heading_names_the_limit_the_metric_and_the_value(command):
    told = command("front", "tiny", "--at", "delay <= 20 ms", "--best", "m.cost").stdout
    assert told.splitlines()[0] == ("lowest m.cost under delay <= 20 ms: 3 $, best found so far")


def test_where_no_design_satisfies_a_limit_the_nearest_miss_is_shown(command):
    told = command("front", "tiny", "--at", "delay <= 5 ms").stdout
    assert told.startswith("no design satisfies delay <= 5 ms; these miss by least")
    assert "m.latency <= 5 ms is missed by 100 %" in told


def test_json_states_the_limits_the_metric_and_its_value(command):
    words = ["front", "tiny", "--at", "delay <= 20 ms", "--best", "m.cost", "--format", "json"]
    told = json.loads(command(*words).stdout)
    assert (told["at"], told["best"]["name"], told["best_value"]) == (
        ["delay <= 20 ms"],
        "m.cost",
        3.0,
    )
    assert told["reference_point"] == [0.08, 9.0]


def test_csv_has_a_row_for_each_selected_design(command):
    told = command("front", "tiny", "--at", "delay <= 12 ms", "--format", "csv").stdout
    assert [row["n"] for row in csv.DictReader(told.splitlines())] == ["6", "5"]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--at", "m.latncy <= 20 ms"], "did you mean 'm.latency'?"),
        (["--at", "latency <= 20 ms"], "did you mean 'm.latency'?"),
        (["--at", "delay <= 20 mm2"], "does not go with"),
        (["--at", "delay"], "is no limit"),
        (["--at", "delay <= "], "delay <="),
        (["--at", "rich == 0"], "is no limit"),
        (["--best", "cost"], "did you mean 'm.cost'?"),
        (["--best", "m.area"], "'minimize: m.area' or 'maximize: m.area'"),
        (["--best", ""], "expression"),
    ],
)
def test_a_mistake_in_an_option_has_a_hint(command, words, says):
    found = command("front", "tiny", *words)
    assert found.exit_code != 0
    assert says in str(found.exception)


def test_the_proof_of_a_study_covers_limits_on_its_objectives_only(folder):
    study = Study.load("proved", f"sqlite:///{folder}/dse.db")
    assert study.front_at("delay <= 20 ms", best="m.cost").exact
    assert not study.front_at("delay <= 20 ms", "m.area <= 5 mm2").exact
    assert not study.front_at(best="minimize: m.area").exact
    assert not study.front_at("delay >= 20 ms").exact


def test_a_selection_that_the_search_did_not_cover_says_how_to_search_it(command):
    told = command("front", "proved", "--at", "m.area <= 5 mm2").stdout
    assert "6 of 12 legal designs are recorded" in told
    assert "constraints" in told


def test_python_selects_as_the_command_does(folder):
    study = Study.load("tiny", f"sqlite:///{folder}/dse.db")
    best = study.front_at("delay <= 20 ms", best="m.cost")
    assert [dict(trial.design) for trial in best] == [{"n": 3, "rich": 0}]
    assert len(study.front_at("delay <= 1 ms")) == 0
