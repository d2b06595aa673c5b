"""Intervals of modelled objectives, and designs that the errors of models leave alike."""

from __future__ import annotations

import math

import pytest
from rich.console import Console

from dse.analysis.error_intervals import STDERR_OF_MEAN, find_intervals
from dse.protocols import ModelError
from dse.report.text.interval_table import print_intervals
from tests.analysis.test_membership import problem_of, trial_of

PROBLEM = problem_of("f", "g")
NEAR = [trial_of(0, 100.0, 20.0), trial_of(1, 103.0, 17.0), trial_of(2, 300.0, 5.0)]


def stated(mean: float, within: float = math.nan, **more: str) -> ModelError:
    return ModelError("held out", mean, within, more.get("group", "runs"), more.get("shares", ""))


def alike(first: ModelError, second: ModelError, trials=NEAR[:2]) -> bool:
    found = find_intervals(PROBLEM, trials, {"f": [first, second]})
    assert found is not None
    return found.rows[0].alike == (trials[1].number,)


def test_the_interval_has_two_standard_errors_of_the_mean_error():
    found = find_intervals(PROBLEM, NEAR, {"f": [stated(0.1)] * 3})
    assert found.rows[0].width == pytest.approx((2 * 0.1 * math.sqrt(math.pi / 2), 0.0))
    assert found.depends == (True, False)
    assert found.rows[0].origin == ("held out", "")


def test_an_objective_that_divides_by_the_metric_has_the_same_relative_error_to_first_order():
    found = find_intervals(problem_of("1 / f"), NEAR[:1], {"f": [stated(0.001)]})
    assert found.rows[0].width[0] == pytest.approx(2 * 0.001 * STDERR_OF_MEAN, rel=0.01)


@pytest.mark.parametrize(("mean", "expected"), [(0.05, True), (0.005, False)])
def test_designs_are_alike_if_they_differ_by_at_most_two_standard_errors(mean, expected):
    # two standard errors of the difference are about 2 * 1.25 * mean * sqrt(2): 18 % and 1.8 %
    assert alike(stated(mean), stated(mean)) is expected


def test_a_common_factor_does_not_blur_the_order_of_designs_that_share_it():
    shared = stated(0.3, within=0.002, shares="llama3-70b h100")
    other = stated(0.3, within=0.002, shares="llama3-70b h200")
    assert not alike(shared, shared)
    assert alike(shared, other)


def test_without_an_error_within_the_group_the_complete_error_counts():
    assert alike(stated(0.05, shares="one"), stated(0.05, shares="one"))


def test_a_clearly_worse_value_is_distinguished():
    found = find_intervals(PROBLEM, NEAR, {"f": [stated(0.05)] * 3})
    assert [row.alike for row in found.rows] == [(1,), (0,), ()]


def test_an_unknown_error_compares_nothing_and_is_said():
    unknown = ModelError("data sheet only")
    found = find_intervals(PROBLEM, NEAR[:2], {"f": [stated(0.05), unknown]})
    assert (found.is_known, found.is_compared) == (False, False)
    assert found.rows[1].width == (None, 0.0)
    console = Console(record=True, width=160)
    print_intervals(PROBLEM, NEAR[:2], found, console=console)
    text = console.export_text()
    assert "error unknown (data sheet only)" in text
    assert "the error is not known for all objectives" in text


def test_measured_metrics_have_no_interval():
    assert find_intervals(PROBLEM, NEAR, {}) is None
