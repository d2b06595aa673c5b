"""Which runs are of one kind, and what their group is called."""

import json
from dataclasses import replace

import pytest

from dse.analysis.run_groups import alone, by_kind


@pytest.fixture
def study(question):
    def made(name: str, seed: int, optimizer: str = "tpe", **options):
        told = {"optimizer": {"use": optimizer, **options}, "seed": seed, "space": {}}
        asked = replace(question.problem, identity=json.dumps(told))
        return question.run(name, (1, 1), problem=asked, seed=seed)

    return made


def names(groups) -> dict[str, list[str]]:
    return {group.name: [run.name for run in group.runs] for group in groups}


def test_runs_that_differ_in_their_seed_alone_are_a_group(study) -> None:
    runs = [study("s.tpe.0", 0), study("s.sobol.0", 0, "sobol"), study("s.tpe.1", 1)]
    assert names(by_kind(runs)) == {"s.tpe": ["s.tpe.0", "s.tpe.1"], "s.sobol": ["s.sobol.0"]}


def test_other_options_make_another_group(study) -> None:
    runs = [study("a", 0, "nsga2", population=10), study("b", 1, "nsga2", population=20)]
    assert names(by_kind(runs)) == {"a": ["a"], "b": ["b"]}


def test_a_seed_that_ends_in_another_ones_digits_is_no_other_name(study) -> None:
    runs = [study("s.tpe.1", 1), study("s.tpe.11", 11), study("s.tpe.21", 21)]
    assert list(names(by_kind(runs))) == ["s.tpe"]


def test_names_without_a_stem_give_way_to_the_optimizer(study) -> None:
    assert list(names(by_kind([study("first", 0), study("second", 1)]))) == ["tpe"]


def test_runs_of_which_nothing_is_known_stay_alone(question) -> None:
    runs = [question.run("a", (1, 1), seed=0), question.run("b", (1, 1), seed=1)]
    assert names(by_kind(runs)) == {"a": ["a"], "b": ["b"]} == names(alone(runs))
