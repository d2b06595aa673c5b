"""Why the best designs win, as the page tells it."""

from dataclasses import replace

from dse.analysis.runner_up import Breakdown, MetricContrast, duels
from dse.core.metric import Metric
from dse.core.problem import Source
from dse.report.html.runner_up_html import duel_words, duels_html
from dse.report.html.study_page import ReportSections, report_html


def with_energy_parts(problem, first: str = "leak", second: str = "switch"):
    """The problem, and its first duel with an energy that is made of two parts."""
    names = (f"chip.{first}", f"chip.{second}")
    metrics = {
        name: Source(
            metric=Metric(name=name.partition(".")[2], unit="J", part_of="energy"),
            kind="modelled",
            reads=frozenset(),
        )
        for name in names
    }
    parts = (
        MetricContrast(metric=names[0], winner=1e-3, rival=3e-3),
        MetricContrast(metric=names[1], winner=1, rival=1),
    )
    total = MetricContrast(metric="chip.energy", winner=1.001, rival=1.003)
    return replace(problem, sources={**problem.sources, **metrics}), Breakdown(
        total=total, parts=parts
    )


def test_the_sentence_names_the_change_the_loss_and_the_part_behind_it(made_up) -> None:
    problem, breakdown = with_energy_parts(made_up.problem)
    duel = replace(duels(made_up.front, made_up.trials)[0], breakdowns=(breakdown,))
    words = duel_words(problem, duel)
    assert " in place of " in words
    assert "Its chip.energy is 1.003 J for 1.001 J: chip.leak +2 mJ." in words


def test_parts_in_which_the_two_agree_have_no_row(made_up) -> None:
    problem, breakdown = with_energy_parts(made_up.problem)
    duel = replace(duels(made_up.front, made_up.trials)[0], breakdowns=(breakdown,))
    assert "chip.leak" in duels_html(problem, [duel])
    assert "chip.switch" not in duels_html(problem, [duel])


def test_hostile_parts_are_shown_and_not_run(made_up) -> None:
    problem, breakdown = with_energy_parts(made_up.problem, first="<script>alert(1)</script>")
    duel = replace(duels(made_up.front, made_up.trials)[0], breakdowns=(breakdown,))
    assert "<script>" not in duels_html(problem, [duel])


def test_the_page_tells_a_duel_for_each_objective(made_up) -> None:
    told = duels(made_up.front, made_up.trials)
    page = report_html(
        made_up.name,
        made_up.question,
        made_up.front,
        made_up.trials,
        beside=ReportSections(duels=told),
    )
    assert page.count('class="box duel"') == len(made_up.problem.objectives)


def test_a_design_that_beats_the_winner_is_told_as_one_that_was_not_tried(made_up) -> None:
    for place, (goal, side) in enumerate((("maximize", "more"), ("minimize", "less"))):
        duel = duels(made_up.front, made_up.trials)[place]
        assert duel.objective.goal == goal
        assert not duel.beaten
        turned = replace(duel, winner=duel.rival, rival=duel.winner)
        assert turned.beaten
        assert f" % {side})." in duel_words(made_up.problem, turned)
        assert f" % {side})." not in duel_words(made_up.problem, duel)
        assert "A better one that this study has not finished" in duels_html(
            made_up.problem, [turned]
        )
        assert "Runner-up" not in duels_html(made_up.problem, [turned])
