"""Studies side by side, against numbers worked out by hand."""

import json
from dataclasses import replace

import numpy as np
import pytest

from dse.analysis.comparison import ComparisonOptions, compare
from dse.analysis.curves import curves
from dse.analysis.run_groups import RunGroup, alone
from dse.core.expressions.parser import parse
from dse.core.objective import Limit
from dse.core.parameter import Integer
from dse.core.space import DesignSpace
from dse.errors import StudyError

JOINT = ComparisonOptions(joint_nadir=True)


@pytest.fixture
def good(question):
    return question.run("good", (1, 3), (2, 2), (3, 1))  # 3, then 5, then 6 below (4, 4)


@pytest.fixture
def poor(question):
    return question.run("poor", (3, 3), (1, 3))  # 1, then 3


def results_of(comparison):
    return [result for group in comparison.groups for result in group.results]


def test_each_study_is_told_what_it_spent_and_had(good, poor) -> None:
    first, second = results_of(compare(alone([good, poor])))
    assert first.totals == {"trials": 3, "measurements": 3, "seconds": 30}
    assert second.totals == {"trials": 2, "measurements": 2, "seconds": 20}
    assert (first.final["hypervolume"], first.front) == (6.0, 3)
    assert (second.final["hypervolume"], second.front) == (3.0, 1)


def test_studies_are_compared_at_the_least_that_any_spent(good, poor) -> None:
    comparison = compare(alone([good, poor]))
    assert (comparison.over, comparison.at) == ("measurements", 2.0)
    assert [one.values["hypervolume"] for one in results_of(comparison)] == [5.0, 3.0]


@pytest.mark.parametrize(
    ("over", "at", "volumes"),
    [
        ("measurements", 1, [3, 1]),
        ("trials", 3, [6, 3]),
        ("seconds", 20, [5, 3]),
        ("seconds", 9.9, [0, 0]),
    ],
)
def test_the_budget_may_be_said(good, poor, over, at, volumes) -> None:
    comparison = compare(alone([good, poor]), ComparisonOptions(over=over, at=at))
    assert [one.values["hypervolume"] for one in results_of(comparison)] == volumes


def test_cost_is_seconds_at_each_studys_price(good, poor) -> None:
    priced = [replace(good, price_per_s=2.0), replace(poor, price_per_s=0.5)]
    first, second = results_of(compare(alone(priced), ComparisonOptions(over="cost")))
    assert (first.totals["cost"], second.totals["cost"]) == (60.0, 10.0)
    assert (first.values["hypervolume"], second.values["hypervolume"]) == (0.0, 3.0)


def test_cost_without_a_price_is_refused_with_how_to_give_one(good, poor) -> None:
    with pytest.raises(StudyError) as caught:
        compare(alone([replace(good, price_per_s=2.0), poor]), ComparisonOptions(over="cost"))
    assert "price" in caught.value.hint


def test_levels_are_shares_of_the_best_final_hypervolume(good, poor) -> None:
    first, second = results_of(compare(alone([good, poor])))
    assert first.to["measurements"] == (3.0, 3.0, 3.0)
    assert first.to["seconds"] == (30.0, 30.0, 30.0)
    assert second.to["measurements"] == (None, None, None)


def test_of_a_group_the_median_is_told_and_how_many_ever_came_there(question) -> None:
    whole = question.group("whole", [[(1, 1)], [(3, 3), (1, 1)], [(3, 3)]])
    (group,) = compare([whole]).groups
    assert group.to("measurements", 0) == (2.0, 2)


def test_of_a_group_that_mostly_never_came_there_no_median_is_told(question) -> None:
    whole = question.group("whole", [[(1, 1)], [(3, 3)], [(3, 3)]])
    (group,) = compare([whole]).groups
    assert group.to("measurements", 0) == (None, 1)


def test_a_groups_quartiles_are_those_of_its_studies(question) -> None:
    fronts = [[(1, 1)], [(2, 2)], [(3, 3)]]  # 9, 4 and 1 below (4, 4)
    (group,) = compare([question.group("g", fronts)]).groups
    assert group.quartiles("hypervolume") == (2.5, 4.0, 6.5)


def test_a_design_that_several_found_counts_for_each(good, poor) -> None:
    comparison = compare(alone([good, poor]))
    assert len(comparison.yardstick.joint) == 3
    assert [one.share for one in results_of(comparison)] == [1.0, pytest.approx(1 / 3)]


def test_the_curves_are_steps_on_one_grid(good, poor) -> None:
    counts, seconds = curves(compare(alone([good, poor])))
    assert counts.grid.tolist() == [0, 1, 2, 3]
    assert counts.values[0]["hypervolume"].tolist() == [[0, 3, 5, 6]]
    assert counts.values[1]["hypervolume"].tolist() == [[0, 1, 3, 3]]
    assert seconds.values[1]["hypervolume"][0, -1] == 3.0


def test_before_its_first_design_a_study_is_infinitely_far(good) -> None:
    counts, _ = curves(compare(alone([good])))
    assert counts.values[0]["igd+"][0, 0] == np.inf
    assert counts.values[0]["igd+"][0, -1] == 0.0


def test_a_study_that_measured_nothing_is_told_zero_beside_one_that_did(good, poor) -> None:
    free = replace(good, name="free", measured=np.zeros(3, dtype=int))
    comparison = compare(alone([poor, free]))
    assert (comparison.over, comparison.at) == ("measurements", 2.0)
    assert results_of(comparison)[1].totals["measurements"] == 0
    assert results_of(comparison)[1].values["hypervolume"] == 6.0


def test_trials_are_counted_where_no_study_measured(good) -> None:
    free = replace(good, measured=np.zeros(3, dtype=int))
    assert compare(alone([free])).over == "trials"


def test_a_study_without_a_front_is_compared_all_the_same(question, good) -> None:
    none = replace(question.run("none", (1, 1)), losses=np.full((1, 2), np.nan))
    told = results_of(compare(alone([good, none])))[1]
    assert told.front == 0
    assert told.final == {"hypervolume": 0, "igd+": np.inf, "epsilon": np.inf, "r2": np.inf}


def test_a_study_without_a_trial_is_compared_all_the_same(question, good) -> None:
    comparison = compare(alone([good, question.run("empty")]))
    assert results_of(comparison)[1].totals["measurements"] == 0
    assert comparison.at == 3


def unlike(problem, what, made_objective):
    return {
        "objectives": replace(
            problem, objectives=(made_objective("t.a"), made_objective("t.b", "maximize"))
        ),
        "limits": replace(problem, limits=(Limit(text="t.a <= 3 J", slack=parse("3 - t.a")),)),
        "reference points": replace(problem, fixed_reference=(5.0, 5.0)),
        "spaces": replace(
            problem, identity="", space=DesignSpace(parameters=(Integer(name="x", low=0, high=9),))
        ),
        "evaluators": replace(problem, identity=identity("2")),
        "scenarios": replace(problem, identity=identity("1", scenarios={"chat": 1.0})),
    }[what]


def identity(version: str, **more) -> str:
    space = {"parameters": {}, "conditions": {}, "rules": {}}
    options = {"file": f"/folder/{version}"}
    evaluators = {"t": {"use": "table", "version": version, "options": options}}
    return json.dumps({"space": space, "evaluators": evaluators, "seed": 0, **more})


PARTS = ["objectives", "limits", "reference points", "spaces", "evaluators", "scenarios"]


@pytest.mark.parametrize("what", PARTS)
def test_unlike_questions_are_refused_and_what_differs_is_named(
    question, made_objective, what: str
) -> None:
    own = replace(question.problem, identity=identity("1"))
    good = question.run("good", (1, 1), problem=own)
    other = question.run("other", (1, 1), problem=unlike(own, what, made_objective))
    with pytest.raises(StudyError, match=f"'good' and 'other'.*their {what} differ"):
        compare(alone([good, other]))


@pytest.mark.parametrize(("what", "word"), [("spaces", "space"), ("evaluators", "evaluators")])
def test_what_may_differ_is_not_looked_at(question, made_objective, what, word) -> None:
    own = replace(question.problem, identity=identity("1"))
    good = question.run("good", (1, 1), problem=own)
    other = question.run("other", (1, 1), problem=unlike(own, what, made_objective))
    assert len(compare(alone([good, other]), ComparisonOptions(may_differ=[word])).groups) == 2


def test_a_space_that_differs_is_told_in_words(question, good, made_objective) -> None:
    narrow = unlike(question.problem, "spaces", made_objective)
    with pytest.raises(StudyError) as caught:
        compare(alone([good, question.run("other", (1, 1), problem=narrow)]))
    assert "in other, x is narrower" in caught.value.hint
    assert "--ignore space" in caught.value.hint


def test_where_a_file_lies_makes_no_other_evaluator(question) -> None:
    here, there = (identity("1").replace("folder", name) for name in ("here", "there"))
    runs = [
        question.run(name, (1, 1), problem=replace(question.problem, identity=told))
        for name, told in (("a", here), ("b", there))
    ]
    assert len(compare(alone(runs)).groups) == 2


def test_other_units_are_another_question(question, good, made_objective) -> None:
    objectives = (made_objective("t.a"), made_objective("t.b", unit="mJ"))
    other = replace(question.problem, objectives=objectives)
    with pytest.raises(StudyError) as caught:
        compare(alone([good, question.run("other", (1, 1), problem=other)]))
    assert "minimize t.b in mJ" in caught.value.hint


@pytest.fixture
def free(question):
    return replace(question.problem, fixed_reference=None)


def test_without_a_stated_reference_point_the_user_is_told_how_to_give_one(question, free) -> None:
    runs = [question.run("a", (1, 1), problem=free), question.run("b", (2, 2), problem=free)]
    with pytest.raises(StudyError) as caught:
        compare(alone(runs))
    assert "reference:" in caught.value.hint


def test_the_joint_nadir_lies_a_tenth_beyond_the_worst_of_all_fronts(question, free) -> None:
    runs = [
        question.run("a", (1, 3), (3, 1), problem=free),
        question.run("b", (0, 5), problem=free),
    ]
    assert compare(alone(runs), JOINT).reference_point == pytest.approx((3.3, 5.4))


def test_the_joint_nadir_makes_other_reference_points_comparable(question, good) -> None:
    far = replace(question.problem, fixed_reference=(5.0, 5.0))
    runs = [good, question.run("other", (2, 2), problem=far)]
    assert compare(alone(runs), JOINT).reference_point == pytest.approx((3.2, 3.2))


def test_there_is_no_joint_nadir_without_a_front(question, free) -> None:
    none = replace(question.run("a", (1, 1), problem=free), losses=np.full((1, 2), np.nan))
    with pytest.raises(StudyError, match="no joint nadir"):
        compare(alone([none]), JOINT)


def test_nothing_to_compare_is_a_mistake() -> None:
    with pytest.raises(StudyError, match="no study to compare"):
        compare([])


def test_a_group_of_nothing_is_a_mistake() -> None:
    with pytest.raises(StudyError, match="no study to compare"):
        compare([RunGroup("none", ())])
