"""Studies side by side, against numbers worked out by hand."""

from dataclasses import replace

import pytest

from dse.analysis.comparison import Run, compare
from dse.core.design import Design
from dse.core.metric import Metric
from dse.core.objective import Limit, Objective
from dse.core.parameter import Integer
from dse.core.parser import parse
from dse.core.problem import Problem, Source
from dse.core.space import Space
from dse.core.trial import State, Trial
from dse.errors import StudyError


def objective(text: str, goal="minimize", unit: str = "J") -> Objective:
    return Objective(expression=parse(text), goal=goal, unit=unit)


QUESTION = Problem(
    space=Space(parameters=(Integer(name="x", low=0, high=99),)),
    sources={
        name: Source(metric=Metric(name=name, unit="J"), kind="measured", reads=frozenset({"x"}))
        for name in ("t.a", "t.b")
    },
    objectives=(objective("t.a"), objective("t.b")),
    fixed_reference=(4.0, 4.0),
)


def run(name: str, *points: tuple[float, float], problem: Problem = QUESTION) -> Run:
    trials = [
        Trial(
            number=number,
            design=Design({"x": number}),
            state=State.DONE,
            metrics={"t.a": a, "t.b": b},
            cost_s=10.0,
            measured=1,
        )
        for number, (a, b) in enumerate(points)
    ]
    return Run(name, problem, trials)


GOOD = run("good", (1, 3), (2, 2), (3, 1))  # 3, then 5, then 6 below (4, 4)
POOR = run("poor", (3, 3), (1, 3))  # 1, then 3


def test_each_study_is_told_what_it_spent_and_had() -> None:
    good, poor = compare([GOOD, POOR]).results
    assert (good.count, good.seconds, good.hypervolume, good.front) == (3, 30.0, 6.0, 3)
    assert (poor.count, poor.seconds, poor.hypervolume, poor.front) == (2, 20.0, 3.0, 1)


def test_levels_are_shares_of_the_best_final_hypervolume() -> None:
    good, poor = compare([GOOD, POOR]).results
    assert good.counts_to == (3.0, 3.0, 3.0)
    assert good.seconds_to == (30.0, 30.0, 30.0)
    assert poor.counts_to == (None, None, None)


def test_a_design_that_several_found_counts_for_each() -> None:
    comparison = compare([GOOD, POOR])
    assert comparison.joint_front == 3
    assert [result.share for result in comparison.results] == [1.0, pytest.approx(1 / 3)]


def test_the_curves_are_steps_on_one_grid() -> None:
    comparison = compare([GOOD, POOR])
    assert comparison.counts.tolist() == [0, 1, 2, 3]
    assert comparison.results[0].over_counts.tolist() == [0, 3, 5, 6]
    assert comparison.results[1].over_counts.tolist() == [0, 1, 3, 3]
    assert comparison.results[1].over_seconds[-1] == 3.0


def test_a_study_that_measured_nothing_is_told_zero_beside_one_that_did() -> None:
    free = GOOD._replace(name="free", trials=[replace(t, measured=0) for t in GOOD.trials])
    comparison = compare([POOR, free])
    assert comparison.counted == "measurements"
    assert comparison.results[1].count == 0
    assert comparison.results[1].over_counts.tolist() == [6.0, 6.0, 6.0]


def test_trials_are_counted_where_no_study_measured() -> None:
    free = GOOD._replace(trials=[replace(t, measured=0) for t in GOOD.trials])
    comparison = compare([free])
    assert (comparison.counted, comparison.results[0].count) == ("trials", 3)


def test_a_study_without_a_front_is_compared_all_the_same() -> None:
    far = run("far", (9, 9))
    none = far._replace(trials=[replace(far.trials[0], state=State.FAILED, metrics={})])
    result = compare([GOOD, none]).results[1]
    assert (result.hypervolume, result.front, result.distance, result.step) == (0, 0, None, None)


OTHER = {
    "objectives": replace(QUESTION, objectives=(objective("t.a"), objective("t.b", "maximize"))),
    "limits": replace(QUESTION, limits=(Limit(text="t.a <= 3 J", slack=parse("3 - t.a")),)),
    "reference points": replace(QUESTION, fixed_reference=(5.0, 5.0)),
}


@pytest.mark.parametrize("what", list(OTHER))
def test_unlike_questions_are_refused_and_what_differs_is_named(what: str) -> None:
    with pytest.raises(StudyError, match=f"'good' and 'other'.*their {what} differ"):
        compare([GOOD, run("other", (1, 1), problem=OTHER[what])])


def test_other_units_are_another_question() -> None:
    other = replace(QUESTION, objectives=(objective("t.a"), objective("t.b", unit="mJ")))
    with pytest.raises(StudyError) as caught:
        compare([GOOD, run("other", (1, 1), problem=other)])
    assert "minimize t.b in mJ" in caught.value.hint


FREE = replace(QUESTION, fixed_reference=None)


def test_without_a_stated_reference_point_the_user_is_told_how_to_give_one() -> None:
    with pytest.raises(StudyError) as caught:
        compare([run("a", (1, 1), problem=FREE), run("b", (2, 2), problem=FREE)])
    assert "reference:" in caught.value.hint


def test_the_joint_nadir_lies_a_tenth_beyond_the_worst_of_all_fronts() -> None:
    runs = [run("a", (1, 3), (3, 1), problem=FREE), run("b", (0, 5), problem=FREE)]
    assert compare(runs, joint_nadir=True).reference_point == pytest.approx((3.3, 5.4))


def test_the_joint_nadir_makes_other_reference_points_comparable() -> None:
    other = run("other", (2, 2), problem=OTHER["reference points"])
    assert compare([GOOD, other], joint_nadir=True).reference_point == pytest.approx((3.2, 3.2))


def test_there_is_no_joint_nadir_without_a_front() -> None:
    failed = run("a", (1, 1), problem=FREE)
    failed = failed._replace(trials=[replace(failed.trials[0], state=State.FAILED)])
    with pytest.raises(StudyError, match="no joint nadir"):
        compare([failed], joint_nadir=True)


def test_nothing_to_compare_is_a_mistake() -> None:
    with pytest.raises(StudyError, match="no study to compare"):
        compare([])
