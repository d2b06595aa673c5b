"""The region in which designs that were not measured may still improve the front, as drawn."""

from dataclasses import replace

import pytest

from dse.core.expressions.parser import parse
from dse.core.metric import Metric
from dse.core.objective import Objective
from dse.core.parameter import Integer
from dse.core.pareto import ParetoSet
from dse.core.problem import Problem, Source
from dse.core.recorded_gap import RecordedGap
from dse.core.space import DesignSpace
from dse.core.trial import Outcome, State, Trial
from dse.report.figures import drawings
from dse.report.html.study_page import report_html

TIME_MS = (2.0, 4.0, 9.0, 9.5)
ACCURACY = (0.5, 0.75, 0.875, 0.5)
COST = (1.0, 3.0, 2.0, 5.0)
GAP = RecordedGap(
    share=0.1,
    confidence=0.9,
    measurements=4,
    undecided=3,
    designs=10,
    points=((0.001, 0.5, 4.0), (0.003, 0.8125, 4.0), (0.0095, 0.625, 0.5)),
)


def problem(count: int) -> Problem:
    metrics = {"time": ("minimize", "s"), "accuracy": ("maximize", ""), "cost": ("minimize", "")}
    chosen = dict(list(metrics.items())[:count])
    return Problem(
        space=DesignSpace(parameters=(Integer(name="row", low=0, high=9),)),
        sources={
            name: Source(
                metric=Metric(name=name, unit=unit), kind="measured", reads=frozenset({"row"})
            )
            for name, (_, unit) in chosen.items()
        },
        objectives=tuple(
            Objective(expression=parse(name), goal=goal, unit=unit)
            for name, (goal, unit) in chosen.items()
        ),
        fixed_reference=(0.01, 0.25, 6.0)[:count],
    )


def trials() -> list[Trial]:
    rows = zip(TIME_MS, ACCURACY, COST, strict=True)
    values = [
        {"time": 1e-3 * time, "accuracy": quality, "cost": cost} for time, quality, cost in rows
    ]
    outcomes = [Outcome(state=State.DONE, metrics=one, measured=1) for one in values]
    return [
        Trial(number=n, design={"row": n}, told=n).finished(one) for n, one in enumerate(outcomes)
    ]


def figures(count: int, gap: RecordedGap | None):
    front = ParetoSet.of(problem(count), trials())
    drawn = drawings(front, trials(), gap=gap)
    return {one.key: one for one in drawn if one.key.startswith("pair")}


def trace(drawn, name: str):
    return next(one for one in drawn.figure.data if one.name == name)


TWO = replace(GAP, points=tuple(point[:2] for point in GAP.points))


def test_the_optimistic_front_is_a_dashed_step_line_through_its_points():
    line = trace(figures(2, TWO)["pair-0-1"], "optimistic front")
    assert (line.line.dash, line.line.shape) == ("dash", "hv")
    assert list(line.x) == pytest.approx([1.0, 3.0, 9.0])
    assert list(line.y) == pytest.approx([0.5, 0.8125, 0.875])


def test_the_region_between_both_fronts_is_shaded_up_to_the_reference_point():
    area = trace(figures(2, TWO)["pair-0-1"], "undecided at 90 %")
    there = [(1, 0.25), (1, 0.5), (3, 0.5), (3, 0.8125), (9, 0.8125), (9, 0.875), (10, 0.875)]
    back = [(10, 0.875), (9, 0.875), (9, 0.75), (4, 0.75), (4, 0.5), (2, 0.5), (2, 0.25)]
    assert area.fill == "toself"
    assert list(zip(area.x, area.y, strict=True)) == [pytest.approx(one) for one in there + back]


def test_each_pair_of_three_objectives_has_its_own_region():
    drawn = figures(3, GAP)
    lines = {key: trace(one, "optimistic front") for key, one in drawn.items()}
    assert list(lines["pair-0-2"].x) == pytest.approx([1.0, 2.0, 9.5])
    assert list(lines["pair-0-2"].y) == pytest.approx([4.0, 1.0, 0.5])
    assert list(lines["pair-1-2"].x) == pytest.approx([0.875, 0.625])
    assert list(lines["pair-1-2"].y) == pytest.approx([2.0, 0.5])


@pytest.mark.parametrize(
    "gap", [None, replace(TWO, points=()), replace(TWO, points=((0.009, 0.3),))]
)
def test_nothing_is_shaded_where_nothing_is_undecided(gap):
    drawn = figures(2, gap)["pair-0-1"]
    assert "optimistic front" not in [one.name for one in drawn.figure.data]
    assert "undecided" not in drawn.caption


def test_points_of_another_number_of_objectives_are_ignored():
    assert "undecided" not in figures(2, GAP)["pair-0-1"].caption


def test_the_report_draws_the_recorded_gap():
    front = ParetoSet.of(problem(2), trials())
    page = report_html("s", "", front, trials(), TWO.events)
    assert page.count('"optimistic front"') == 1
    assert "it is undecided at 90 %" in page
