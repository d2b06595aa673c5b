"""Best design of each objective under each scenario, as a table, as JSON and as HTML."""

from __future__ import annotations

from rich.console import Console
from rich.markup import escape as plain

from dse.analysis.scenario_comparison import Contest, Contrast, ScenarioResult
from dse.report.html.render import render
from dse.report.json.front_json import finite
from dse.report.schemas.front_schema import ContrastFacts, StandingFacts
from dse.report.text.terminal_table import Lane, print_split, results_console
from dse.report.words import join_list, number_text, percent_text


def contrast_table(contrast: Contrast, *, console: Console | None = None) -> None:
    """Print each objective's best trial under each scenario; nothing if no objective differs."""
    console = console or results_console()
    for contest in contrast.contests:
        console.print()
        console.print(plain(verdict(contest)), style="bold")
        headings, rows = _rows(contrast, contest)
        cells = zip(*rows, strict=True)
        lanes = [
            Lane(heading=heading, cells=list(column), right=place > 0)
            for place, (heading, column) in enumerate(zip(headings, cells, strict=True))
        ]
        if lanes:
            print_split(console, lanes[0], lanes[1:])
    if contrast.contests:
        console.print(plain(fronts_words(contrast)), style="dim")


def verdict(contest: Contest) -> str:
    """Return a sentence on an objective's best trial: the same everywhere, or per scenario."""
    if not contest.standings:
        return f"{contest.text}: no design is an answer under any scenario"
    if len(contest.winners) == 1:
        return f"{contest.text}: trial {contest.winners[0]} wins under every scenario"
    places = [
        f"trial {winner} under "
        + join_list(one.scenario for one in contest.standings if one.winner == winner)
        for winner in contest.winners
    ]
    own = "" if contest.chosen is None else f"; over all, trial {contest.chosen}"
    return f"{contest.text}: the winner changes: {'; '.join(places)}{own}"


def fronts_words(contrast: Contrast) -> str:
    """Return a sentence with the size of each scenario's front and of their intersection."""
    each = join_list(f"{len(front)} under {name}" for name, front in contrast.fronts.items())
    return f"on the front of one scenario: {each}; under every one: {len(contrast.everywhere)}"


def contrast_json(contrast: Contrast) -> ContrastFacts:
    """Return the best trial per objective and the front of each scenario, as JSON."""
    return {
        "weights": dict(contrast.weights),
        "fronts": {name: list(front) for name, front in contrast.fronts.items()},
        "under_every": list(contrast.everywhere),
        "objectives": [
            {
                "expression": contest.text,
                "goal": contest.goal,
                "unit": contest.unit,
                "trial": contest.chosen,
                "changes": len(contest.winners) > 1,
                "scenarios": [_standing(one) for one in contest.standings],
            }
            for contest in contrast.contests
        ],
    }


def contrast_html(contrast: Contrast) -> str:
    """Return each objective's best trial per scenario as HTML; empty if no objective differs."""
    if not contrast.contests:
        return ""
    contests = [(verdict(one), *_rows(contrast, one)) for one in contrast.contests]
    return render("report/scenarios.html", contests=contests, fronts=fronts_words(contrast))


def _rows(contrast: Contrast, contest: Contest) -> tuple[list[str], list[list[str]]]:
    own = "-" if contest.chosen is None else f"trial {contest.chosen}"
    headings = ["scenario", "weight", "winner", "value", f"{own} there", "behind"]
    rows = [
        [
            one.scenario,
            f"{100 * contrast.weights[one.scenario]:.3g} %",
            f"trial {one.winner}",
            number_text(one.value, contest.unit),
            number_text(one.chosen_value, contest.unit),
            "-" if one.behind is None else percent_text(one.behind, 3),
        ]
        for one in contest.standings
    ]
    return headings, rows


def _standing(one: ScenarioResult) -> StandingFacts:
    return {
        "scenario": one.scenario,
        "winner": one.winner,
        "value": finite(one.value),
        "chosen_value": finite(one.chosen_value),
        "behind": finite(one.behind),
    }
