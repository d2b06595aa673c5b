"""Values in words."""

from dataclasses import replace

import pytest

from dse.core.metric import Metric
from dse.report.words import (
    design_text,
    join_list,
    metric_text,
    number_text,
    percent_text,
    seconds_text,
    share_text,
    value_text,
    volume_text,
)


@pytest.mark.parametrize(
    ("value", "unit", "words"),
    [
        (65536, "B", "64 KiB"),
        (2.5e8, "Hz", "250 MHz"),
        (1234567, "", "1234567"),
        (0.30000000000000004, "", "0.3"),
        (True, "", "true"),
        ("int8", "", "int8"),
        (None, "B", "-"),
    ],
)
def test_a_parameter_is_told_with_its_unit(value, unit: str, words: str) -> None:
    assert value_text(value, unit) == words


@pytest.mark.parametrize(
    ("value", "unit", "spread", "words"),
    [
        (3.1e-3, "J", None, "3.1 mJ"),
        (0.97, "", 0.0021, "0.97 ± 0.0021"),
        (3.1e-3, "J", 2e-4, "3.1 ± 0.2 mJ"),
        (float("nan"), "J", None, "-"),
        (None, "J", None, "-"),
    ],
)
def test_a_metric_is_told_with_its_standard_error(value, unit, spread, words: str) -> None:
    assert number_text(value, unit, spread) == words


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.0123, "12.3 ms"), (59.0, "59 s"), (250.0, "4 min 10 s"), (7500.0, "2 h 5 min")],
)
def test_a_duration_is_told_as_people_do(seconds: float, words: str) -> None:
    assert seconds_text(seconds) == words


def test_inactive_parameters_are_left_out() -> None:
    assert design_text({"a": 1}, ["a", "b"], {}) == "a=1"


@pytest.mark.parametrize(
    ("words", "text"), [([], ""), (["a"], "a"), (["a", "b", "c"], "a, b and c")]
)
def test_words_are_joined(words: list[str], text: str) -> None:
    assert join_list(words) == text


BOTTLENECK = Metric(name="bottleneck", words=("compute", "memory"))


@pytest.mark.parametrize(
    ("value", "text"), [(0.0, "compute"), (1.0, "memory"), (0.5, "0.5"), (None, "-")]
)
def test_a_metric_with_words_is_shown_as_its_word(value, text):
    assert metric_text(value, BOTTLENECK) == text


def test_a_metric_without_words_is_shown_with_its_unit():
    assert metric_text(0.003, Metric(name="energy", unit="J"), 0.0001) == "3 ± 0.1 mJ"


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (None, "-"),
        (0.0, "0 %"),
        (5.6e-12, "less than 0.001 %"),
        (0.8321, "83.2 %"),
        (0.98765, "98.8 %"),
        (0.999712, "99.971 %"),
        (1 - 1e-12, "99.999999 %"),
        (1.0, "100 %"),
    ],
)
def test_a_share_of_a_volume_shows_what_is_missing_to_the_ideal(share, text):
    assert share_text(share) == text


def test_a_volume_that_is_estimated_says_so(made_up, monkeypatch) -> None:
    share = percent_text(made_up.front.hypervolume_share, 3)
    assert volume_text(made_up.front) == share
    monkeypatch.setattr("dse.core.pareto.MOST_EXACT", {3: 1})
    assert volume_text(replace(made_up.front)).startswith("≈")
    unknown = replace(made_up.front, reference=None)
    assert volume_text(unknown) == "-"
