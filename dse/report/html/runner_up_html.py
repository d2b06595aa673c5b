"""Explanation of why each objective's best design beats the runner-up, as text and HTML."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dse.analysis.runner_up import Breakdown, Contender, MetricContrast, RunnerUpComparison
from dse.core.metric import Metric
from dse.core.problem import Problem
from dse.core.ties import is_tie
from dse.report.answer import MOST_PARAMETERS
from dse.report.html.render import render
from dse.report.words import (
    design_text,
    join_list,
    number_text,
    parameter_units,
    percent_text,
    truncate_text,
    value_text,
)

_MOST_PARTS = 8
_MOST_CHANGED = 8
_SPOKEN_PARTS = 3
_LEAST_SHARE = 0.05
"""Minimum share of the largest difference for a part to be mentioned in the sentence."""


def duels_html(problem: Problem, duels: Sequence[RunnerUpComparison]) -> str:
    """Return a box per objective as HTML: best design, runner-up, and the metrics that differ."""
    names = [parameter.name for parameter in problem.space.parameters]
    units = parameter_units(problem)
    return render(
        "report/duels.html",
        duels=duels,
        title=_title,
        who=_who,
        design=lambda duel: design_text(duel.winner.design, names, units, MOST_PARAMETERS),
        words=lambda duel: duel_words(problem, duel),
        tables=lambda duel: [_table(problem.metrics, each) for each in duel.breakdowns],
        number=number_text,
        difference=_format_difference,
    )


def duel_words(problem: Problem, duel: RunnerUpComparison) -> str:
    """Return sentences on how the runner-up's parameters differ and what this costs in metrics."""
    gap = _gap(duel)
    sentences = [
        f"{_changes(problem, duel)} gives {gap}." if gap else f"{_changes(problem, duel)} ties."
    ]
    sentences += [_lost(problem.metrics, each) for each in duel.breakdowns]
    return " ".join(sentences)


def _title(duel: RunnerUpComparison) -> str:
    side = "Lowest" if duel.objective.goal == "minimize" else "Highest"
    return f"{side} {duel.objective.name}: {_value(duel, duel.winner)}"


def _who(contender: Contender) -> str:
    return "A design" if contender.number is None else f"Trial {contender.number}"


def _value(duel: RunnerUpComparison, of: Contender) -> str:
    return number_text(
        duel.objective.sign * float(of.losses[duel.place]),
        duel.objective.unit,
        written=duel.objective.written,
    )


def _changes(problem: Problem, duel: RunnerUpComparison) -> str:
    units = parameter_units(problem)
    words = [
        f"{truncate_text(name)} {truncate_text(value_text(rival, units[name]))}"
        f" in place of {truncate_text(value_text(winner, units[name]))}"
        for name, (winner, rival) in duel.changed.items()
    ]
    more = len(words) - _MOST_CHANGED
    listed = [*words[:_MOST_CHANGED], f"{more} more"] if more > 0 else words
    return join_list(listed) or "The same design"


def _gap(duel: RunnerUpComparison) -> str:
    mine, theirs = (float(one.losses[duel.place]) for one in (duel.winner, duel.rival))
    if is_tie(mine, theirs):
        return ""
    side = "more" if (duel.objective.goal == "minimize") != duel.beaten else "less"
    share = f" ({percent_text(abs(theirs / mine - 1))} {side})" if mine else ""
    return f"{duel.objective.name} {_value(duel, duel.rival)}{share}"


def _lost(metrics: Mapping[str, Metric], breakdown: Breakdown) -> str:
    total = breakdown.total
    unit = metrics[total.metric].unit
    least = _LEAST_SHARE * max(abs(part.more) for part in breakdown.parts)
    spoken = [part for part in breakdown.parts if abs(part.more) >= least][:_SPOKEN_PARTS]
    parts = join_list(f"{part.metric} {_format_difference(part, unit)}" for part in spoken)
    both = f"{number_text(total.rival, unit)} for {number_text(total.winner, unit)}"
    return f"Its {total.metric} is {both}: {parts}."


def _format_difference(part: MetricContrast, unit: str) -> str:
    return f"{'+' if part.more > 0 else '-'}{number_text(abs(part.more), unit)}"


def _table(
    metrics: Mapping[str, Metric], breakdown: Breakdown
) -> tuple[MetricContrast, str, list[tuple[MetricContrast, str]]]:
    """Return the metric, its unit, and its largest summands, each with a bar length in percent."""
    widest = max(abs(part.more) for part in breakdown.parts)
    listed = [part for part in breakdown.parts if part.more][:_MOST_PARTS]
    parts = [(part, f"{100 * abs(part.more) / widest:.0f}") for part in listed]
    return breakdown.total, metrics[breakdown.total.metric].unit, parts
