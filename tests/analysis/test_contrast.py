"""Who wins under which scenario, on trials whose numbers are known."""

from __future__ import annotations

from dataclasses import replace

from dse.analysis.scenario_comparison import contrast
from dse.core.design import Design
from dse.core.expressions.parser import parse
from dse.core.metric import Metric
from dse.core.objective import Limit, Objective
from dse.core.parameter import Integer
from dse.core.problem import Problem, Source
from dse.core.space import DesignSpace
from dse.core.trial import State, Trial

SPACE = DesignSpace(parameters=(Integer(name="x", low=0, high=9),))
NAMES = ("a", "b", "same")
SOURCES = {
    name: Source(metric=Metric(name=name), kind="modelled", reads=frozenset({"x"}))
    for name in NAMES
}
WEIGHTS = {"first": 0.5, "second": 0.5}


def problem_of(*texts: str, limits: tuple[Limit, ...] = ()) -> Problem:
    objectives = tuple(Objective(expression=parse(text), goal="minimize") for text in texts)
    return Problem(space=SPACE, sources=SOURCES, objectives=objectives, limits=limits)


def trials_of(*rows: tuple[float, float, float]) -> list[Trial]:
    return [
        Trial(
            number=number,
            design=Design({"x": number}),
            state=State.DONE,
            metrics=dict(zip(NAMES, row, strict=True)),
        )
        for number, row in enumerate(rows)
    ]


PROBLEM = problem_of("max(a, b)", "same")
ALONE = {"first": problem_of("a", "same"), "second": problem_of("b", "same")}


def test_an_objective_that_is_the_same_everywhere_is_no_contest():
    found = contrast(PROBLEM, ALONE, WEIGHTS, trials_of((1, 9, 5), (9, 1, 5), (4, 4, 5)))
    assert [contest.text for contest in found.contests] == ["max(a, b)"]


def test_the_winner_changes_and_the_chosen_one_wins_nowhere():
    found = contrast(PROBLEM, ALONE, WEIGHTS, trials_of((1, 9, 5), (9, 1, 5), (4, 4, 5)))
    (contest,) = found.contests
    assert contest.winners == (0, 1)
    assert contest.chosen == 2
    assert [one.behind for one in contest.standings] == [3.0, 3.0]


def test_one_design_may_win_everywhere():
    found = contrast(PROBLEM, ALONE, WEIGHTS, trials_of((1, 1, 5), (9, 2, 5)))
    assert found.contests[0].winners == (0,)


def test_a_design_outside_a_scenarios_limits_does_not_win_there():
    limit = Limit(text="a >= 2", slack=parse("a - 2"))
    alone = {**ALONE, "first": replace(ALONE["first"], limits=(limit,))}
    found = contrast(PROBLEM, alone, WEIGHTS, trials_of((1, 3, 5), (4, 6, 5)))
    first, second = found.contests[0].standings
    assert (first.winner, first.behind) == (1, None)
    assert second.winner == 0


def test_without_an_answer_nothing_is_told():
    found = contrast(PROBLEM, ALONE, WEIGHTS, [])
    assert found.contests[0].chosen is None
    assert found.contests[0].standings == ()
    assert found.everywhere == ()
