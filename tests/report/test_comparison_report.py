"""A comparison in words, as a table, as strict JSON and as a page."""

import io
import json
import re
from dataclasses import replace

import numpy as np
import pytest
from rich.console import Console

from dse.analysis.comparison import ComparisonOptions, compare
from dse.analysis.run_groups import RunGroup, alone
from dse.analysis.runs import Run
from dse.report.axes import is_log
from dse.report.figures.attainment_figure import attainment_figures
from dse.report.html.comparison_page import comparison_html
from dse.report.json.comparison_json import comparison_json
from dse.report.text.comparison_table import comparison_table, legend
from dse.report.text.conclusion_sentences import verdicts

POINT = (0.5, 1e-4, 1e-2)


@pytest.fixture(scope="module")
def asked(made_up):
    return replace(made_up.problem, fixed_reference=POINT)


@pytest.fixture(scope="module")
def singles(made_up, asked):
    return compare(
        alone([Run.of("whole", asked, made_up.trials), Run.of("few", asked, made_up.trials[:3])])
    )


def group(name: str, problem, trials, size: int, shift: float) -> RunGroup:
    """Runs of the trials in another order each, with the losses moved."""
    rng = np.random.default_rng(4)
    runs = [
        Run.of(f"{name}.{seed}", replace(problem, seed=seed), rng.permutation(np.array(trials)))
        for seed in range(size)
    ]
    return RunGroup(name, tuple(replace(run, losses=run.losses * (1 + shift)) for run in runs))


@pytest.fixture(scope="module")
def groups(made_up, asked):
    two = replace(asked, objectives=asked.objectives[1:], fixed_reference=POINT[1:])
    return compare(
        [
            group("better", two, made_up.trials[:60], 9, 0.0),
            group("worse", two, made_up.trials[:60], 9, 0.3),
        ],
        ComparisonOptions(at=40),
    )


@pytest.fixture(scope="module")
def cubes(made_up, asked):
    return compare(
        [group("one", asked, made_up.trials, 3, 0.0), group("two", asked, made_up.trials, 3, 0.2)]
    )


def printed(comparison, width: int = 120) -> str:
    to = Console(file=io.StringIO(), width=width)
    comparison_table(comparison, console=to)
    return to.file.getvalue()  # type: ignore[attr-defined]


def test_each_study_has_a_line(singles) -> None:
    told = printed(singles)
    assert re.search(r"^ whole ", told, re.MULTILINE)
    assert re.search(r"^ few ", told, re.MULTILINE)
    assert "reference point, from the studies: quality.accuracy 0.5" in told


@pytest.mark.parametrize("width", [60, 80, 200])
def test_a_comparison_fits_the_terminal(groups, width: int) -> None:
    assert max(map(len, printed(groups, width).splitlines())) <= width


def test_at_which_budget_and_why_is_said(singles, groups) -> None:
    assert "compared at 3 measurements, the least that any study spent" in printed(singles)
    assert "compared at 40 measurements" in printed(groups)


def test_a_claim_is_a_sentence_with_its_numbers(groups) -> None:
    first = verdicts(groups)[0]
    wanted = (
        r"better better than worse in hypervolume at 40 measurements: "
        r"\+\S+ percentage points \[\S+, \S+\], "
        r"A12 \d\.\d\d, p \S+ after Holm"
    )
    assert re.fullmatch(wanted, first)


def test_the_better_one_leads_the_sentence_whatever_the_order(groups) -> None:
    turned = compare(
        [RunGroup(g.name, tuple(c.run for c in cs)) for g, cs in _pairs(groups)][::-1],
        ComparisonOptions(at=40),
    )
    assert sorted(verdicts(turned)) == sorted(verdicts(groups))


def _pairs(comparison):
    return list(zip(comparison.groups, comparison.courses, strict=True))


def test_two_studies_are_told_to_be_no_ground(singles) -> None:
    told = verdicts(singles)
    assert told[0].startswith("no difference between whole and few can be claimed at 3")
    assert told[-1] == ("one study each: nothing can be claimed without more seeds (dse sweep)")


def test_too_few_seeds_are_told_with_the_smallest_p_and_how_many_it_takes(cubes) -> None:
    assert verdicts(cubes)[-1] == (
        "with 3 seeds each the smallest p possible is 0.25, 1 after Holm over 4 claims: "
        "no result could support a claim; 8 seeds each would be enough"
    )


def test_a_comparison_is_strict_json_with_a_level_never_reached_as_null(singles) -> None:
    told = json.loads(json.dumps(comparison_json(singles), allow_nan=False))
    whole, few = (one["studies"][0] for one in told["groups"])
    assert (whole["study"], few["study"]) == ("whole", "few")
    assert whole["to"]["measurements"]["0.99"] <= 88
    assert few["to"]["measurements"]["0.99"] is None
    curve = told["groups"][0]["curves"]["seconds"]["igd+"]
    assert len(told["grids"]["seconds"]) == len(curve["median"])
    assert curve["median"][0] is None


def test_a_comparison_without_any_volume_has_null_levels(made_up) -> None:
    far = replace(made_up.problem, fixed_reference=(0.999, 1e-9, 1e-9))
    told = comparison_json(compare(alone([Run.of("none", far, made_up.trials)])))
    study = told["groups"][0]["studies"][0]
    assert study["to"]["seconds"] == {"0.9": None, "0.95": None, "0.99": None}


def test_claims_are_told_with_all_their_numbers(groups) -> None:
    claim = comparison_json(groups)["claims"][0]
    assert claim["better"] == "better"
    assert claim["test"] == "wilcoxon"
    assert claim["p"] <= claim["p_holm"] <= 0.05
    assert claim["interval"][0] <= claim["difference"] <= claim["interval"][1]


def test_attained_points_are_in_the_objectives_own_signs(cubes) -> None:
    surface = comparison_json(cubes)["groups"][0]["attainment"][0]
    assert surface["studies"] == 1
    assert 0.5 < surface["points"][0][0] <= 1.0


def test_the_page_needs_nothing_from_elsewhere(groups) -> None:
    page = comparison_html(groups)
    assert not re.search(r'(src|href)="(?!data:)', page.split("<body>")[1])
    assert "better better than worse" in page
    assert page.count('data-figure="curve-') == 5
    assert 'data-figure="difference-0-0-1"' in page


def test_three_objectives_are_drawn_in_slices_of_the_third(cubes) -> None:
    drawn = attainment_figures(cubes)
    assert [one.key for one in drawn[::2]] == ["attained-0", "attained-1", "attained-2"]
    assert "chip.latency <=" in drawn[0].title


def test_four_objectives_have_no_attainment_figure(made_up, asked) -> None:
    four = replace(
        asked,
        objectives=(*asked.objectives, asked.objectives[0]),
        fixed_reference=(*POINT, 0.5),
    )
    comparison = compare(alone([Run.of("four", four, made_up.trials)]))
    assert attainment_figures(comparison) == []
    assert comparison_json(comparison)["groups"][0]["attainment"] == []


def test_names_are_no_markup(made_up, asked) -> None:
    odd = Run.of("[red]<b>a</b>", asked, made_up.trials[:20])
    comparison = compare(alone([odd]))
    assert "[red]<b>a</b>" in printed(comparison)
    assert "<b>a</b>" not in comparison_html(comparison)


@pytest.mark.parametrize(
    ("least", "scale"), [(0.5, "linear"), (0.001, "log"), (0.0, "linear"), (float("nan"), "linear")]
)
def test_a_distance_that_falls_far_is_drawn_on_a_logarithmic_axis(least, scale):
    values = np.array([[[1.0, 1.0, least]] * 3])
    assert ("log" if is_log(values) else "linear") == scale


def test_where_volumes_are_estimates_the_legend_says_so(cubes, monkeypatch) -> None:
    assert "estimates" not in legend(cubes)
    monkeypatch.setattr("dse.core.pareto.MOST_EXACT", {3: 0})
    assert "hypervolumes of this many designs and objectives are estimates" in legend(cubes)
