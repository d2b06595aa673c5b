"""Options as YAML gives them: what is off is refused when the evaluator is made, with a hint."""

from __future__ import annotations

from typing import Any

import pytest

from dse.errors import DseError, PluginError, SpecError
from dse_evaluators.generic.command import Command
from dse_evaluators.generic.options import seconds_of


def made(**options: Any) -> Command:
    return Command(**{"run": ["true"], "metrics": {"power": "W"}, **options})


@pytest.mark.parametrize(
    ("given", "seconds"),
    [(60, 60), (0.5, 0.5), ("60 s", 60), ("5 min", 300), ("250 ms", 0.25), ("1.5 h", 5400)],
)
def test_a_time_is_a_number_of_seconds_or_has_a_unit(given: float | str, seconds: float) -> None:
    assert seconds_of("timeout", given) == pytest.approx(seconds)


@pytest.mark.parametrize("given", [0, -1, "0 s", True, None, "soon", "60", float("nan"), [1]])
def test_what_is_no_time_is_refused(given: object) -> None:
    with pytest.raises(PluginError, match="timeout is"):
        seconds_of("timeout", given)


@pytest.mark.parametrize(("given", "named"), [("60 W", "W is no s"), ("60 parsec", "no unit")])
def test_a_time_in_another_unit_is_refused(given: str, named: str) -> None:
    with pytest.raises(SpecError, match=f"timeout: .*{named}"):
        seconds_of("timeout", given)


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"run": "python bench.py"}, r"run is 'python bench.py' and no list"),
        ({"run": []}, "run is empty"),
        ({"run": ["bench", 4]}, r'run holds 4, which is no text\n.*quotes: "4"'),
        ({"run": ["bench", "a\0b"]}, "NUL"),
        ({"metrics": {}}, "metrics is empty"),
        ({"metrics": ["power"]}, "metrics names each metric"),
        ({"metrics": {"peak power": "W"}}, "cannot be called 'peak power'"),
        ({"metrics": {"power": None}}, "unit of 'power' is None"),
        ({"metrics": {"power": "parsec"}}, "no unit 'parsec'"),
        ({"repeats": 0}, "repeats is 0"),
        ({"repeats": True}, "repeats is True"),
        ({"repeats": 2.5}, "repeats is 2.5"),
        ({"reads": "rows"}, "reads is 'rows' and no list"),
        ({"units": ["MHz"]}, "units is"),
        ({"units": {"clock": 3}}, "unit of 'clock' is 3"),
        ({"units": {"clock": "parsec"}}, "no unit 'parsec'"),
        ({"units": {"clok": "MHz"}, "reads": ["clock"]}, "did you mean 'clock'"),
        ({"env": {"THREADS": 1}}, "env sets 'THREADS' to 1"),
        ({"env": {"A=B": "1"}}, "env sets 'A=B'"),
        ({"kind": "modeled"}, "did you mean 'modelled'"),
    ],
)
def test_an_option_that_is_off_is_refused(options: dict[str, Any], named: str) -> None:
    with pytest.raises(DseError, match=named):
        made(**options)


def test_units_and_kind_are_as_told() -> None:
    one = made(metrics={"power": "W", "hits": ""}, kind="modelled", version="2026-02")
    units = {name: metric.unit for name, metric in one.provides.items()}
    assert (units, one.kind, one.version) == ({"power": "W", "hits": ""}, "modelled", "2026-02")


def test_readings_are_wanted_in_the_units_that_are_named() -> None:
    assert made(units={"clock": "MHz"}).units == {"clock": "MHz"}
