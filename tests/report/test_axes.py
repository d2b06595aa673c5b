"""Where numbers lie along axes, and the unit that they are told in."""

from dataclasses import replace

import numpy as np
import pytest

from dse.report.answer import Answer
from dse.report.axes import axis_of, focus, seconds_axis
from dse.report.figures.parallel import Spoke, spokes
from dse.report.figures.style import hovers
from dse.report.html.study_page import report_html


def spoke(answer: Answer, title: str) -> Spoke:
    return next(one for one in spokes(answer) if one.title == title)


@pytest.mark.parametrize(
    ("unit", "values", "told", "factor"),
    [
        ("J", [1e-6, 3e-6, 2e-5], "µJ", 1e6),
        ("", [0.9, 0.95], "", 1.0),
        ("J*s", [1e-6, 3e-6], "J*s", 1.0),
        ("mm2", [10.0, 20.0], "mm2", 1.0),
        ("J", [0.0, 0.0], "J", 1.0),
        ("J", [float("nan")], "J", 1.0),
    ],
)
def test_an_axis_takes_the_prefix_of_its_typical_value(unit, values, told, factor) -> None:
    axis = axis_of("x", unit, np.array(values))
    assert axis.unit == told
    assert axis.factor == pytest.approx(factor)


@pytest.mark.parametrize(
    ("values", "log"), [([1, 51], True), ([1, 50], False), ([0, 900], False), ([-5, 900], False)]
)
def test_wide_positive_values_go_on_a_log_axis(values: list[float], log: bool) -> None:
    assert axis_of("x", "", np.array(values, dtype=float)).log is log


@pytest.mark.parametrize(("longest_s", "unit"), [(90, "s"), (600, "min"), (1e5, "h")])
def test_time_is_told_as_people_do(longest_s: float, unit: str) -> None:
    assert seconds_axis("time", longest_s).unit == unit


def test_the_best_of_every_objective_stands_at_the_top(made_up) -> None:
    answer = Answer.of(made_up.front)
    accuracy, energy = spoke(answer, "quality.accuracy"), spoke(answer, "chip.energy")
    assert accuracy.places[np.argmax(answer.values[:, 0])] == 1.0
    assert energy.places[np.argmin(answer.values[:, 1])] == 1.0
    assert energy.places[np.argmax(answer.values[:, 1])] == 0.0


def test_an_inactive_parameter_has_a_place_of_its_own_below_the_rest(made_up) -> None:
    answer = Answer.of(made_up.front)
    group = spoke(answer, "group")
    inactive = np.array(["group" not in trial.design for trial in answer.trials])
    assert group.ticks[0] == (0.0, "-")
    assert (group.places[inactive] == 0.0).all()
    assert (group.places[~inactive] > 0.0).all()


def test_ordered_values_are_equally_spaced_and_told_with_units(made_up) -> None:
    answer = Answer.of(made_up.front)
    ticks = spoke(answer, "chip.buffer").ticks
    assert [words for _, words in ticks] == [
        "32 KiB",
        "64 KiB",
        "128 KiB",
        "256 KiB",
        "512 KiB",
        "1 MiB",
    ]
    assert np.diff([place for place, _ in ticks]) == pytest.approx(0.2)


def test_a_log_parameter_has_its_geometric_mean_in_the_middle(made_up) -> None:
    answer = Answer.of(made_up.front)
    clocks = [float(trial.design["chip.clock"]) for trial in answer.trials]
    middle = np.sqrt(min(clocks) * max(clocks))
    assert spoke(answer, "chip.clock").ticks[1] == (0.5, f"{middle / 1e6:.4g} MHz")


def test_no_design_leaves_its_axis(made_up) -> None:
    places = np.array([one.places for one in spokes(Answer.of(made_up.front))])
    assert (places >= -0.12).all()
    assert (places <= 1.0).all()


def test_the_weightiest_parameter_stands_beside_the_objectives(made_up) -> None:
    answer = Answer.of(made_up.front, made_up.trials)
    first, *_, last = answer.varying
    titles = [spoke.title for spoke in spokes(replace(answer, weighty=(first,)))]
    assert titles[: len(answer.varying)] == [*answer.varying[1:], first]
    assert last in titles


def test_of_too_many_parameters_the_weightiest_are_told_everywhere(made_up, monkeypatch) -> None:
    monkeypatch.setattr("dse.report.answer.MOST_PARAMETERS", 2)
    answer = Answer.of(made_up.front, made_up.trials)
    first, second, *_, last = answer.varying
    assert answer.shown_parameters == (first, second)
    weighed = replace(answer, weighty=(last, first))
    assert weighed.shown_parameters == (first, last)
    size = len(answer.varying)
    assert weighed.omission_note == f"2 of {size} parameters are shown."
    objectives = [objective.name for objective in made_up.problem.objectives]
    assert [spoke.title for spoke in spokes(weighed)] == [first, last, *objectives]
    (hover, *_) = hovers(weighed)
    assert f"{last}=" in hover
    assert f"{second}=" not in hover
    text = report_html("x", "", made_up.front, made_up.trials)
    head = text[text.index('id="front"') :].partition("</thead>")[0]
    assert head.count("<th ") == 1 + len(objectives) + len(answer.other_metrics) + 2
    assert text.count(f"2 of {size} parameters are shown.") >= 2


def test_of_one_design_all_parameters_are_told(made_up) -> None:
    answer = Answer.of(made_up.front, made_up.trials).thin(1)
    assert set(answer.shown_parameters) == set(answer.trials[0].design)
    assert answer.omission_note == ""


NOTHING = np.array([])


def test_ends_are_drawn_in_to_where_the_best_are() -> None:
    best, others = np.array([1.0, 2.0]), np.array([1.5, 2.5, 3.0, 2.0, 1.0, 100.0])
    low, high = focus(best, others, NOTHING, log=False)
    assert low < 1.0
    assert 3.0 < high < 4.0


def test_what_is_marked_is_kept_in_sight_up_to_two_spans_away() -> None:
    best, others = np.array([1.0, 2.0]), np.array([1.0, 50.0, 1.5, 1.2, 1.4])
    assert focus(best, others, np.array([3.9]), log=False)[1] > 3.9
    assert focus(best, others, np.array([4.1]), log=False)[1] < 4.1


def test_ends_of_a_log_axis_are_drawn_in_by_decades() -> None:
    best, others = np.array([1.0, 100.0]), np.array([1.0, 10.0, 50.0, 1e9])
    low, high = focus(best, others, NOTHING, log=True)
    assert 0.1 < low < 1.0
    assert 100.0 < high < 1e4


@pytest.mark.parametrize("others", [[], [1.0, 2.0], [0.5, 2.5]])
def test_where_nothing_lies_far_away_the_axis_is_left_alone(others) -> None:
    assert focus(np.array([1.0, 2.0]), np.array(others), NOTHING, log=False) is None


def test_without_a_best_there_is_nothing_to_draw_in_to() -> None:
    assert focus(NOTHING, np.array([1.0, 2.0]), NOTHING, log=False) is None


def test_ends_are_apart_where_all_that_is_near_is_one_number() -> None:
    others = np.array([5.0, 5.0, 5.0, 6.0, 7.0, 500.0])
    low, high = focus(np.array([5.0]), others, NOTHING, log=False)
    assert low < 5.0 < high < 500.0
