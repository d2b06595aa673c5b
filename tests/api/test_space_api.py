"""A space in Python: part of it, what stands against designs, and other tools' words."""

from __future__ import annotations

import json

import numpy as np
import pytest

from dse import DseError, Space, Study, evaluator
from dse.core.metric import Metric
from dse.errors import DesignError, SpecError

LOSS = Metric("loss", goal="minimize")


@pytest.fixture
def space() -> Space:
    return Space(
        {"tile": [16, 32, 64, 128], "stages": (1, 6), "buffer": {"ordinal": ["64 KiB", "128 KiB"]}},
        "tile * stages <= 512",
        name="tiles",
    )


def test_a_part_has_the_designs_with_these_values(space):
    part = space.fixed(tile=128)
    assert part.count() == 4 * 2
    assert {one["tile"] for one in part.enumerate()} == {128}
    assert part.name == "tiles"


def test_a_quantity_may_have_a_unit(space):
    assert space.fixed({"buffer": "64 KiB"}).count() == 22
    assert space.fixed(buffer=65536).count() == 22


@pytest.mark.parametrize(
    ("told", "domain"),
    [
        (np.array([16, 32]), {"ordinal": [16, 32]}),
        ([np.int64(16), np.float32(0.5)], {"ordinal": [16, 0.5]}),
        ((np.int64(1), np.int64(8)), {"integer": [1, 8]}),
        ((np.float64(0.5), 2), {"real": [0.5, 2]}),
        (np.array([True, False]), {"boolean": True}),
        (np.array(["int8", "int4"]), {"choice": ["int8", "int4"]}),
    ],
)
def test_numbers_of_numpy_are_numbers(told, domain):
    assert Space({"a": told}).document["parameters"] == {"a": domain}


def test_a_table_of_numbers_is_no_domain():
    with pytest.raises(SpecError, match="does not describe the values of a"):
        Space({"a": np.zeros((2, 2))})


def test_a_row_of_a_frame_is_a_design(space):
    row = {"tile": np.int64(16), "stages": np.int64(2), "buffer": np.float64(65536)}
    assert dict(space.check(row)) == {"tile": 16, "stages": 2, "buffer": 65536}
    assert row in space
    assert {**row, "tile": np.int64(17)} not in space
    assert {**row, "buffer": "64 KiB"} in space
    assert {**row, "buffer": "64 KiB of"} not in space
    assert space.fixed(tile=np.int64(64), stages=np.int64(8 - 3)).count() == 2
    assert space.why(row).legal


def test_why_is_shown_in_its_words(space):
    told = space.why(tile=128, stages=6)
    assert repr(told) == str(told) == "\n".join(told.lines())
    assert "tile * stages <= 512" in repr(told)


def test_a_part_may_be_empty_and_says_why(space):
    part = space.fixed(tile=128, stages=6)
    assert part.count() == 0
    assert part.why().legal is False
    with pytest.raises(SpecError, match="no legal design is left"):
        part.sample()


def test_a_part_is_a_space_that_a_study_takes(space):
    @evaluator(LOSS, kind="modelled")
    def cost(tile: int, stages: int):
        return {"loss": tile / stages}

    study = Study("part", space.fixed(tile=64), [cost], storage="memory://", unread="buffer")
    study.run()
    assert [one.design["tile"] for one in study.front] == [64]
    assert study.front[0].design["stages"] == 6


@pytest.mark.parametrize(
    ("values", "problem"),
    [({"tyle": 16}, "there is no parameter 'tyle'"), ({"tile": 17}, "tile cannot be 17")],
)
def test_a_value_that_is_none_is_refused_with_what_is_one(space, values, problem):
    for asked in (space.fixed, space.why):
        with pytest.raises(DesignError, match=problem) as caught:
            asked(values)
        assert "tile" in caught.value.hint or "16" in caught.value.hint


def test_why_tells_what_stands_against_values(space):
    verdict = space.why(tile=128, stages=6)
    assert verdict.legal is False
    assert "set: tile = 128" in str(verdict)
    assert "tile * stages <= 512" in str(verdict)
    assert space.why(tile=128).json()["designs"] == 8


def test_a_space_without_any_design_says_which_rule_leaves_none():
    space = Space({"a": [1, 2]}, "a > 3")
    assert space.count() == 0
    assert "a > 3" in str(space.why())
    assert repr(space) == "<Space of a: 0 legal designs>"
    with pytest.raises(SpecError, match="a > 3"):
        space.sample()


@pytest.mark.parametrize("method", ["uniform", "sobol", "stratified"])
def test_a_sample_is_legal_and_the_same_for_a_seed(space, method):
    drawn = space.sample(8, seed=3, method=method)
    assert len(drawn) == 8
    assert all(one in space for one in drawn)
    assert drawn == space.sample(8, seed=3, method=method)
    assert drawn != space.sample(8, seed=4, method=method)


def test_a_description_counts_what_rules_remove(space):
    told = space.describe()
    assert (told["name"], told["designs"], told["without_rules"]) == ("tiles", 44, 48)
    assert [one["rule"] for one in told["rules"]] == ["tile * stages <= 512"]


def test_a_space_goes_through_the_words_of_another_tool(space, tmp_path):
    told = space.export("configspace", tmp_path / "theirs.json")
    assert json.loads(told["text"])["hyperparameters"]
    assert told["file"] == str(tmp_path / "theirs.json")
    again = Space.import_(tmp_path / "theirs.json")
    assert again.count() == space.count()
    assert set(map(_key, again.enumerate())) == set(map(_key, space.enumerate()))


def test_what_another_tool_cannot_say_is_refused_or_told(space):
    with pytest.raises(SpecError, match="Optuna cannot express"):
        space.export("optuna")
    told = space.export("optuna", drop_rules=True)
    assert any("tile * stages" in note for note in told["notes"])


def test_what_a_space_file_cannot_say_is_told(tmp_path):
    ends = {"low": 0.0, "high": 1.0, "log": False, "step": None}
    theirs = {"a b": {"name": "FloatDistribution", "attributes": ends}}
    (tmp_path / "optuna.json").write_text(json.dumps(theirs))
    space = Space.import_(tmp_path / "optuna.json", "optuna")
    assert space.notes
    assert "a b" in space.notes[0]


def test_a_written_space_is_the_same_space(space, tmp_path):
    space.export("yaml", tmp_path / "flat.yaml")
    assert space.difference(Space.read(tmp_path / "flat.yaml"))["same"]


def test_a_difference_names_the_values(space):
    told = space.difference(space.fixed(tile=64))
    assert not told["same"]
    assert "16, 32, 128" in " ".join(told["differences"])


def test_a_study_is_no_space(tmp_path):
    (tmp_path / "study.yaml").write_text("study: one\nspace: space.yaml\n")
    with pytest.raises(DseError, match="this is a study, and no space"):
        Space.read(tmp_path / "study.yaml")


def _key(design):
    return tuple(sorted(design.items()))


def test_what_is_no_design_is_in_no_space():
    assert 5 not in Space({"tile": [16, 32]})
    assert "tile" not in Space({"tile": [16, 32]})
