"""Spaces from mappings of Python: of the shape of a file, with keys as places."""

from enum import StrEnum
from pathlib import Path

import numpy as np
import pytest

from dse.errors import SpecError, SpecErrors
from dse.schema.space.space_loader import space_from


def mistakes_in(value, **options) -> str:
    with pytest.raises((SpecError, SpecErrors)) as caught:
        space_from(value, **options)
    return str(caught.value)


class Format(StrEnum):
    INT8 = "int8"
    FP8 = "fp8"


def test_a_mapping_says_what_the_file_says(tmp_path, read):
    value = {
        "space": "s",
        "arguments": {"n": np.int64(8)},
        "data": {"t": [{"v": np.float64(1.5)}, {"v": 2}]},
        "parameters": {
            "tp": {"ordinal": "divisors(n)"},
            "x": {"ordinal": (1, 2, 4)},
            "y": {"ordinal": np.array([0.5, 1.0])},
            "f": {"choice": [Format.INT8, Format.FP8]},
            "bits": {"each": 2, "ordinal": range(2, 5)},
        },
        "constraints": ["x <= tp", "t[0].v + y >= 2", "bits[0] < bits[1]"],
    }
    text = """
space: s
arguments: {n: 8}
data: {t: [{v: 1.5}, {v: 2}]}
parameters:
  tp: {ordinal: divisors(n)}
  x: {ordinal: [1, 2, 4]}
  y: {ordinal: [0.5, 1.0]}
  f: {choice: [int8, fp8]}
  bits: {each: 2, ordinal: [2, 3, 4]}
constraints: [x <= tp, "t[0].v + y >= 2", "bits[0] < bits[1]"]
"""
    space = space_from(value)
    assert space == read(text)
    assert space.places["tp"] == "parameters.tp"
    assert type(space.by_name["f"].values[0]) is str


def test_paths_are_relative_to_what_is_beside(tmp_path):
    (tmp_path / "part.yaml").write_text("space: p\nparameters: {x: {ordinal: [1, 2]}}\n")
    value = {"space": "s", "include": {"a": {"file": Path("part.yaml"), "fix": {"x": 2}}}}
    assert space_from(value, beside=tmp_path).count() == 1
    assert space_from(value, beside=tmp_path / "notebook.ipynb").count() == 1


def test_the_place_of_a_mistake_is_its_key():
    value = {"space": "s", "parameters": {"x": {"ordinal": []}, "y": {"real": [0]}}}
    message = mistakes_in(value | {"constraints": ["z < 1"]})
    assert "parameters.x: the domain is empty" in message
    assert "parameters.y.real: real needs at least 2 entries" in message
    assert "constraints.0: there is no 'z'" in message


def holding_itself():
    value: dict = {"space": "s"}
    value["parameters"] = value
    return value


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"space": "s", "parameters": {"x": {"choice": [object()]}}}, "a object cannot be written"),
        ({"space": "s", "parameters": {"x": {"choice": {"a", "b"}}}}, "a set cannot be written"),
        ({"space": "s", "parameters": {"x": {"real": [0, float("nan")]}}}, "nan is no finite"),
        ({"space": "s", "parameters": {"x": {"real": [0, 10**400]}}}, "no finite number"),
        ({"space": "s", "parameters": {"x": {"integer": [0, 10**400]}}}, "no finite number"),
        ({"space": "s", "parameters": {("x",): {"ordinal": [1]}}}, "the key ('x',) is no text"),
        (holding_itself(), "nested deeper than"),
        ([], "a space is a mapping"),
        ({"space": "s", "parameters": {"x": {"ordinal": [1], "wen": 3}}}, "did you mean 'when'"),
        ({"space": "s"}, "the space has no parameters"),
        ({"space": "s", "include": {"a": "no\0file"}}, "names no file"),
        ({"space": "s", "include": {"a": "x" * 5000}}, "include.a"),
    ],
)
def test_what_no_file_could_say_is_told(value, expected):
    assert expected in mistakes_in(value)
