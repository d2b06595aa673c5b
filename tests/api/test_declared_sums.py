"""Parts of a metric, declared with a Python function."""

from __future__ import annotations

import pickle

import pytest

from dse import Metric, Study, evaluator
from dse.errors import SpecError, SpecErrors

SPACE = {"first": [2, 3, 4], "second": [2, 3, 4], "third": [2, 3, 4]}
SIZE = "first + second + third"


def loss(first: int, second: int, third: int) -> dict[str, float]:
    return {"loss": 3 * 4.0**-first + 4.0**-second + 2 * 4.0**-third}


def test_a_study_reads_the_parts_of_a_function() -> None:
    parts = {"over": ["first", "second", "third"]}
    measured = evaluator(Metric("loss", goal="minimize"), parts=parts)(loss)
    study = Study("sum", SPACE, measured, minimize=["loss", SIZE], storage="memory://")
    separable = study.problem.sources["loss.loss"].separable
    assert separable is not None
    assert [sorted(group) for group in separable.groups] == [["first"], ["second"], ["third"]]


def test_an_unknown_parameter_is_refused_with_the_nearest_name() -> None:
    measured = evaluator(Metric("loss"), parts={"over": ["first", "secnd"]})(loss)
    with pytest.raises((SpecError, SpecErrors), match="no parameter 'secnd'") as caught:
        Study("sum", SPACE, measured, minimize=["loss", SIZE], storage="memory://")
    assert "did you mean 'second'?" in str(caught.value)


def test_the_parts_travel_to_other_processes() -> None:
    parts = {"loss": {"over": ["first", "second"]}}
    measured = evaluator(Metric("loss"), parts=parts)(loss)
    assert pickle.loads(pickle.dumps(measured)).parts == parts
