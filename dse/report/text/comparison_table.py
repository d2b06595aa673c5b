"""Terminal output of a comparison: a row for each group of studies, then the conclusions."""

from __future__ import annotations

from rich.console import Console
from rich.markup import escape

from dse.analysis.comparison import SHARES, ComparisonResult, GroupResult
from dse.analysis.references import INDICATORS, Indicator
from dse.analysis.runs import Currency
from dse.core.pareto import most_exact
from dse.report.text.conclusion_sentences import (
    INDICATOR_WORDS,
    amount_text,
    budget_sentence,
    indicator_text,
    verdicts,
)
from dse.report.text.terminal_table import Lane, print_split, results_console
from dse.report.words import reference_text


def comparison_table(comparison: ComparisonResult, *, console: Console | None = None) -> None:
    """Print a line for each group of a comparison, then the conclusions as sentences."""
    console = console or results_console()
    point = reference_text(comparison.objectives, comparison.reference_point)
    console.print(escape(f"reference point, from {comparison.reference_from}: {point}"))
    console.print(f"joint front: {len(comparison.yardstick.joint)} designs")
    console.print(escape(budget_sentence(comparison)))
    first, *others = rows_of(comparison)
    key, *lanes = (
        Lane(heading=heading, cells=[row[place] for row in others], right=place > 0)
        for place, heading in enumerate(first)
    )
    print_split(console, key, lanes)
    for sentence in verdicts(comparison):
        console.print(escape(f"- {sentence}"))
    console.print(escape(legend(comparison)), style="dim")


def rows_of(comparison: ComparisonResult) -> list[list[str]]:
    """Return the table of a comparison as text cells: a row of headings, then one per group."""
    several = any(len(group.results) > 1 for group in comparison.groups)
    over = comparison.over
    headings = [
        "study" if not several else "group",
        *(["seeds"] if several else []),
        *(INDICATOR_WORDS[indicator] for indicator in INDICATORS),
        over,
        "time" if over != "seconds" else "trials",
        "front",
        "of joint",
        *(f"to {share:.0%}" for share in SHARES),
    ]
    other: Currency = "seconds" if over != "seconds" else "trials"
    rows = [
        [
            group.name,
            *([str(len(group.results))] if several else []),
            *(_quartiles(comparison, group, indicator) for indicator in INDICATORS),
            _spent(group, over),
            _spent(group, other),
            _span([result.front for result in group.results]),
            f"{max(result.share for result in group.results):.0%}",
            *(_format_target_amount(group, over, place) for place in range(len(SHARES))),
        ]
        for group in comparison.groups
    ]
    return [headings, *rows]


def legend(comparison: ComparisonResult) -> str:
    """Return the notes below the comparison table that explain its columns."""
    lines = [
        "hypervolume: in percent of the volume between the reference point and the ideal point,"
        " which has the best value of each objective in any study: more is better",
        f"'to 90%': {comparison.over} until that share of the best final hypervolume;",
        "IGD+, epsilon and R2 are distances from the joint front in shares of its range:"
        " less is better",
    ]
    largest = max(result.front for group in comparison.groups for result in group.results)
    if largest > most_exact(len(comparison.objectives)):
        lines.append(
            "hypervolumes of this many designs and objectives are estimates, within about 0.1 %"
        )
    if any(len(group.results) > 1 for group in comparison.groups):
        lines.append(
            "groups have medians with [quartiles]; (7/10): 7 of 10 studies reached the share"
        )
    return "\n".join(lines)


def _quartiles(comparison: ComparisonResult, group: GroupResult, indicator: Indicator) -> str:
    quartiles = group.quartiles(indicator)
    low, middle, high = (indicator_text(comparison, indicator, value) for value in quartiles)
    return middle if quartiles[0] == quartiles[2] else f"{middle} [{low}, {high}]"


def _spent(group: GroupResult, currency: Currency) -> str:
    totals = [result.totals[currency] for result in group.results]
    low, high = (amount_text(end, currency) for end in (min(totals), max(totals)))
    return low if low == high else f"{low} .. {high}"


def _span(counts: list[int]) -> str:
    low, high = min(counts), max(counts)
    return str(low) if low == high else f"{low} .. {high}"


def _format_target_amount(group: GroupResult, currency: Currency, place: int) -> str:
    middle, reached = group.to(currency, place)
    words = "-" if middle is None else amount_text(middle, currency)
    many = len(group.results)
    return words if reached in (0, many) else f"{words} ({reached}/{many})"
