"""Errors: how long a message may be, and what a place adds."""

import pytest

from dse.errors import DseError, SpecError, SpecErrors


@pytest.mark.parametrize("kind", [DseError, SpecError])
def test_a_message_that_shows_a_huge_value_keeps_its_start_and_its_end(kind) -> None:
    values = list(range(100_000))
    error = kind(f"clock cannot be {values!r}, in GHz", hint=f"one of {values!r}, or absent")
    assert 5_000 < max(map(len, (error.problem, error.hint))) < 10_000
    assert error.problem.startswith("clock cannot be [0, 1, 2")
    assert error.problem.endswith("99998, 99999], in GHz")
    assert error.hint.endswith(", or absent")


def test_many_mistakes_are_all_shown() -> None:
    mistakes = [SpecError(f"parameter p{number} is empty") for number in range(1_000)]
    assert str(SpecErrors(mistakes)).splitlines() == [one.problem for one in mistakes]


def test_an_error_that_gets_a_place_keeps_its_key_path() -> None:
    error = SpecError("the scale is unknown", hint="log", part=["clock", "scale"])
    placed = error.at("space.yaml:3")
    assert (type(placed), placed.part, str(placed)) == (
        SpecError,
        ("clock", "scale"),
        "space.yaml:3: the scale is unknown\n  hint: log",
    )


def test_of_several_errors_those_without_a_place_get_it() -> None:
    errors = SpecErrors([SpecError("one", where="a.yaml:1"), SpecError("two", part=["x"])], ["y"])
    placed = errors.at("b.yaml:2")
    assert [one.where for one in placed.errors] == ["a.yaml:1", "b.yaml:2"]
    assert (placed.errors[1].part, placed.unchecked) == (("x",), ("y",))
