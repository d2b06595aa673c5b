"""What the figures draw."""

from dataclasses import replace

import pytest

from dse.core.pareto import ParetoSet
from dse.report.figures import drawings
from dse.report.figures.parallel import MAX_LINES


def keys(front: ParetoSet, trials) -> list[str]:
    return [drawing.key for drawing in drawings(front, trials)]


def figure(study, key: str):
    return next(d.figure for d in drawings(study.front, study.trials) if d.key == key)


def trace(study, key: str, name: str):
    return next(one for one in figure(study, key).data if one.name == name)


def test_three_objectives_are_drawn_in_all_their_pairs(made_up) -> None:
    assert keys(made_up.front, made_up.trials) == [
        "pair-0-1",
        "pair-0-2",
        "pair-1-2",
        "space",
        "parallel",
        "growth-measurements",
        "growth-seconds",
    ]


@pytest.mark.parametrize(("objectives", "pairs"), [(1, ["pair-0-1"]), (2, ["pair-0-1"])])
def test_fewer_objectives_are_drawn_in_one_figure(made_up, objectives: int, pairs) -> None:
    asked = replace(made_up.problem, objectives=made_up.problem.objectives[:objectives])
    drawn = keys(ParetoSet.of(asked, made_up.trials), made_up.trials)
    assert [key for key in drawn if key.startswith("pair")] == pairs


def test_the_front_is_drawn_where_it_is(made_up) -> None:
    accuracies = [trial.metrics["quality.accuracy"] for trial in made_up.front.trials]
    energies = [1e6 * trial.metrics["chip.energy"] for trial in made_up.front.trials]
    drawn = trace(made_up, "pair-0-1", "front")
    assert list(drawn.x) == pytest.approx(accuracies)
    assert list(drawn.y) == pytest.approx(energies)


def test_designs_outside_the_limits_are_drawn_apart(made_up) -> None:
    feasible = made_up.problem.feasible(made_up.trials)
    done = sum(trial.state == "done" for trial in made_up.trials)
    outside = trace(made_up, "pair-0-1", "outside limits")
    dominated = trace(made_up, "pair-0-1", "dominated")
    assert len(outside.x) == done - feasible.sum()
    assert len(dominated.x) == feasible.sum() - len(made_up.front.trials)


def test_a_limit_on_an_objective_is_a_line(made_up) -> None:
    notes = [note.text for note in figure(made_up, "pair-0-1").layout.annotations]
    lines = [shape.x0 for shape in figure(made_up, "pair-0-1").layout.shapes]
    assert notes == ["quality.accuracy &gt;= 0.8"]
    assert lines == pytest.approx([0.8])


def test_the_reference_point_is_drawn_in_the_axis_units(made_up) -> None:
    accuracy, energy, _ = made_up.front.reference_point
    drawn = trace(made_up, "pair-0-1", "reference point")
    assert (drawn.x[0], drawn.y[0]) == pytest.approx((accuracy, 1e6 * energy))


def test_a_baseline_is_marked(made_up) -> None:
    asked = replace(made_up.problem, baselines=(dict(made_up.trials[0].design),))
    drawn = drawings(ParetoSet.of(asked, made_up.trials), made_up.trials)[0].figure
    marked = next(one for one in drawn.data if one.name == "baseline")
    assert marked.x[0] == made_up.trials[0].metrics["quality.accuracy"]


def test_the_hypervolume_ends_where_the_front_says(made_up) -> None:
    line = figure(made_up, "growth-measurements").data[0]
    assert line.y[-1] == pytest.approx(made_up.front.hypervolume)
    assert line.x[-1] == sum(trial.measured for trial in made_up.trials)


def test_nearest_misses_are_drawn_under_their_own_name(hopeless) -> None:
    assert len(trace(hopeless, "pair-0-1", "nearest misses").x) == 4


def test_without_a_reference_point_no_volume_is_drawn(made_up) -> None:
    few = made_up.trials[:5]
    assert "growth-seconds" not in keys(ParetoSet.of(made_up.problem, few), few)


def test_an_empty_study_has_no_figures(made_up) -> None:
    assert keys(ParetoSet.of(made_up.problem, []), []) == []


@pytest.mark.slow
def test_a_large_front_is_thinned_and_the_caption_says_so(large) -> None:
    drawing = next(d for d in drawings(large.front, large.trials) if d.key == "parallel")
    assert len(drawing.figure.data) == MAX_LINES
    assert f"150 of {len(large.front.trials)} designs are drawn" in drawing.caption
