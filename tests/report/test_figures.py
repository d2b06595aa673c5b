"""What the figures draw."""

from dataclasses import replace

import numpy as np
import pytest

from dse.core.expressions.parser import parse
from dse.core.objective import Limit
from dse.core.pareto import ParetoSet
from dse.report.axes import Axis
from dse.report.figures import drawings
from dse.report.figures.pairs import trade_off_figures
from dse.report.figures.parallel import MAX_LINES
from dse.report.figures.style import axis_layout, blank
from tests.browsing import soon


def keys(front: ParetoSet, trials) -> list[str]:
    return [drawing.key for drawing in drawings(front, trials)]


def figure(study, key: str):
    return next(d.figure for d in drawings(study.front, study.trials) if d.key == key)


def trace(study, key: str, name: str):
    return trace_of(figure(study, key), name)


def trace_of(figure, name: str):
    return next(one for one in figure.data if one.name == name)


def test_three_objectives_are_drawn_in_all_their_pairs(made_up) -> None:
    assert keys(made_up.front, made_up.trials) == [
        "pair-0-1",
        "pair-0-2",
        "pair-1-2",
        "space",
        "parallel",
        "growth-measurements",
        "growth-seconds",
        "stages",
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
    assert line.y[-1] == pytest.approx(100 * made_up.front.hypervolume_share)
    assert line.x[-1] == sum(trial.measured for trial in made_up.trials)


def test_nearest_misses_are_drawn_under_their_own_name(hopeless) -> None:
    assert len(trace(hopeless, "pair-0-1", "nearest misses").x) == 4


def test_an_exact_front_did_not_grow(made_up) -> None:
    drawn = drawings(made_up.front, made_up.trials, exact=True)
    assert not {"stages", "growth-seconds"} & {drawing.key for drawing in drawn}


def test_of_one_objective_nothing_grew_before_the_first_answer(made_up) -> None:
    asked = replace(made_up.problem, objectives=made_up.problem.objectives[1:2])
    answers = made_up.problem.feasible(made_up.trials)
    misses = [trial for trial, kept in zip(made_up.trials, answers, strict=True) if not kept]
    hits = [trial for trial, kept in zip(made_up.trials, answers, strict=True) if kept]
    trials = [*misses, *hits]
    front = ParetoSet.of(asked, trials)
    drawn = next(d.figure for d in drawings(front, trials) if d.key == "growth-measurements")
    assert len(misses) > 2
    assert min(drawn.data[0].x) > 0
    assert drawn.data[0].y[-1] == pytest.approx(1e6 * front.losses[0, 0])


def test_each_panel_of_the_stages_ends_where_the_front_does_under_its_cut(made_up) -> None:
    drawn = figure(made_up, "stages")
    losses = made_up.front.losses
    cut = np.quantile(losses[:, 2], 0.25)
    kept = losses[losses[:, 2] <= cut]
    whole = [t for t in drawn.data if t.xaxis == "x" and t.name.endswith("(100%)")]
    assert max(whole[0].x) == pytest.approx(-kept[:, 0].min())
    assert min(whole[0].y) == pytest.approx(1e6 * kept[:, 1].min())


def test_two_objectives_have_one_panel_without_a_cut(made_up) -> None:
    asked = replace(made_up.problem, objectives=made_up.problem.objectives[:2])
    front = ParetoSet.of(asked, made_up.trials)
    drawn = next(d.figure for d in drawings(front, made_up.trials) if d.key == "stages")
    (whole,) = [trace for trace in drawn.data if trace.name.endswith("(100%)")]
    inside = {(x, y) for x, y in zip(whole.x, whole.y, strict=True)}
    energies = {
        (t.metrics["quality.accuracy"], 1e6 * t.metrics["chip.energy"]) for t in front.trials
    }
    assert {tuple(np.round(p, 9)) for p in energies} <= {tuple(np.round(p, 9)) for p in inside}


def test_a_trial_far_away_leaves_the_front_its_room_and_is_told_of(made_up) -> None:
    far = replace(
        made_up.trials[0],
        number=999,
        metrics={**made_up.trials[0].metrics, "quality.accuracy": -50.0},
    )
    first = drawings(made_up.front, [*made_up.trials, far])[0]
    assert first.figure.layout.xaxis.range[0] > 0
    assert -50.0 in trace_of(first.figure, "outside limits").x
    assert "1 of these lies far away" in first.caption


def test_a_limit_on_a_log_axis_is_told_of_where_its_line_is(made_up) -> None:
    limit = Limit(text="chip.latency <= 50 us", slack=parse("5e-5 - chip.latency"), scale=5e-5)
    asked = replace(made_up.problem, limits=(limit,))
    front = ParetoSet.of(asked, made_up.trials)
    drawn = next(d.figure for d in drawings(front, made_up.trials) if d.key == "pair-1-2")
    assert drawn.layout.yaxis.type == "log"
    assert drawn.layout.shapes[0].y0 == pytest.approx(50.0)
    assert 10 ** drawn.layout.annotations[0].y == pytest.approx(50.0)


def test_colours_on_a_log_scale_have_a_few_round_numbers(made_up) -> None:
    bar = trace(made_up, "pair-0-1", "front").marker.colorbar
    assert 2 < len(bar.tickvals) < 8
    assert 10 ** np.array(bar.tickvals) == pytest.approx([float(mark) for mark in bar.ticktext])


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


def test_the_more_designs_the_smaller_their_marks_and_none_hides_another(made_up, large) -> None:
    few = trace(made_up, "pair-0-1", "front").marker
    front = replace(
        large.front, trials=large.front.trials * 6, losses=np.tile(large.front.losses, (6, 1))
    )
    assert len(front.trials) > 500
    drawn = trade_off_figures(front, large.trials)[0].figure
    many = next(one for one in drawn.data if one.name == "front").marker
    assert many.size < few.size
    assert (few.line.width, many.line.width) == (1, 0)


def test_the_title_of_an_axis_goes_on_in_a_further_line() -> None:
    axis = Axis(name="a_long_name." * 6 + "metric", unit="J", factor=1.0, log=False)
    lines = axis_layout(axis, "minimize")["title"]["text"].split("<br>")
    assert len(lines) == 2
    assert "".join(lines).replace(" ", "") == f"{axis.title}, minimize".replace(" ", "")


@pytest.mark.browser
@pytest.mark.slow
@pytest.mark.parametrize(
    ("low", "high"), [(20.00011, 20.00019), (5e5, 1.5e6), (0.0, 0.6), (1e6, 3e6)]
)
def test_neighbouring_ticks_differ_and_have_no_powers(chromium, tmp_path, low, high) -> None:
    figure = blank(yaxis=axis_layout(Axis(name="y", unit="", factor=1.0, log=False)), height=400)
    figure.add_scatter(x=[0, 1], y=[low, high])
    (tmp_path / "ticks.html").write_text(figure.to_html(include_plotlyjs=True), encoding="utf-8")
    chromium.get((tmp_path / "ticks.html").as_uri())
    read = "return [...document.querySelectorAll('.ytick text')].map((one) => one.textContent)"
    ticks = soon(chromium, lambda page: page.execute_script(read))
    assert len(ticks) > 2
    assert len(set(ticks)) == len(ticks)
    assert not any("e" in tick for tick in ticks)
