"""An option of the wrong type is told with the type that it should have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pytest

from dse.schema.yaml.option_types import find_mistyped_option


@dataclass(kw_only=True)
class Plain:
    """Takes a few options."""

    name: str = "a"
    rates: Sequence[float] = (0.1,)
    knobs: Mapping[str, int] = field(default_factory=dict)
    foreign: "Unknown" = None  # type: ignore[name-defined] # noqa: F821, UP037


@dataclass(kw_only=True)
class Known:
    """Takes options whose types are all known."""

    name: str = "a"
    rates: Sequence[float] = (0.1,)
    knobs: Mapping[str, int] = field(default_factory=dict)


@pytest.mark.parametrize(
    ("options", "found"),
    [
        ({"name": 3}, ("name", "str")),
        ({"rates": 0.1}, ("rates", "Sequence[float]")),
        ({"knobs": ["a"]}, ("knobs", "Mapping[str, int]")),
        ({"name": "b", "rates": [1, 0.5], "knobs": {"a": 1}}, None),
    ],
)
def test_the_first_option_of_another_type_is_found(options, found):
    assert find_mistyped_option(Known, options) == found


def test_types_that_cannot_be_judged_are_passed_over():
    assert find_mistyped_option(Plain, {"name": 3, "foreign": 4}) is None
