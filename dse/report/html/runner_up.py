"""Explanation of why each best design wins: sentences and a table of metric parts, as HTML."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from dse.analysis.runner_up import Breakdown, Contender, Duel, MetricContrast
from dse.core.metric import Metric
from dse.core.problem import Problem
from dse.core.ties import is_tie
from dse.report.answer import MOST_PARAMETERS
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


def duels_html(problem: Problem, duels: Sequence[Duel]) -> str:
    """Return an HTML box per objective: the winner, the runner-up and the metrics that differ."""
    return "\n".join(_duel(problem, duel) for duel in duels)


def duel_words(problem: Problem, duel: Duel) -> str:
    """Return sentences on the parameters that the rival changes, and on the resulting metrics."""
    gap = _gap(duel)
    told = [
        f"{_changes(problem, duel)} gives {gap}." if gap else f"{_changes(problem, duel)} ties."
    ]
    told += [_lost(problem.metrics, each) for each in duel.breakdowns]
    return " ".join(told)


def _duel(problem: Problem, duel: Duel) -> str:
    design = duel.winner.design
    names = [parameter.name for parameter in problem.space.parameters]
    winner = design_text(design, names, parameter_units(problem), MOST_PARAMETERS)
    rival = "A better one that this study has not finished," if duel.beaten else "Runner-up"
    head = "the better one" if duel.beaten else "runner-up"
    tables = "".join(_table(problem.metrics, each, head) for each in duel.breakdowns)
    return (
        f'<div class="box duel"><h3>{escape(_title(duel))}</h3>'
        f"<p><strong>{escape(_who(duel.winner))}</strong>: {escape(winner)}.</p>"
        f"<p><strong>{rival}</strong> of {escape(duel.among)}: "
        f"{escape(duel_words(problem, duel))}</p>{tables}</div>"
    )


def _title(duel: Duel) -> str:
    side = "Lowest" if duel.objective.goal == "minimize" else "Highest"
    return f"{side} {duel.objective.name}: {_value(duel, duel.winner)}"


def _who(contender: Contender) -> str:
    return "A design" if contender.number is None else f"Trial {contender.number}"


def _value(duel: Duel, of: Contender) -> str:
    sign = 1.0 if duel.objective.goal == "minimize" else -1.0
    return number_text(
        sign * float(of.losses[duel.place]),
        duel.objective.unit,
        written=duel.objective.written,
    )


def _changes(problem: Problem, duel: Duel) -> str:
    units = parameter_units(problem)
    words = [
        f"{truncate_text(name)} {truncate_text(value_text(rival, units[name]))}"
        f" in place of {truncate_text(value_text(winner, units[name]))}"
        for name, (winner, rival) in duel.changed.items()
    ]
    more = len(words) - _MOST_CHANGED
    told = [*words[:_MOST_CHANGED], f"{more} more"] if more > 0 else words
    return join_list(told) or "The same design"


def _gap(duel: Duel) -> str:
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


def _table(metrics: Mapping[str, Metric], breakdown: Breakdown, rival: str) -> str:
    unit = metrics[breakdown.total.metric].unit
    widest = max(abs(part.more) for part in breakdown.parts)
    told = [part for part in breakdown.parts if part.more][:_MOST_PARTS]
    rows = "".join(_row(part, unit, abs(part.more) / widest) for part in told)
    head = "".join(
        f'<th scope="col" class="{side}">{escape(name)}</th>'
        for name, side in (
            (f"what differs in {breakdown.total.metric}", "text"),
            ("winner", ""),
            (rival, ""),
            ("difference", ""),
            ("", "text bar"),
        )
    )
    total = _row(breakdown.total, unit, 0.0)
    return (
        f'<div class="scroll"><table><thead><tr>{head}</tr></thead>'
        f"<tbody>{rows}</tbody><tfoot>{total}</tfoot></table></div>"
    )


def _row(part: MetricContrast, unit: str, share: float) -> str:
    numbers = (
        number_text(part.winner, unit),
        number_text(part.rival, unit),
        _format_difference(part, unit),
    )
    cells = "".join(f"<td>{escape(number)}</td>" for number in numbers)
    side = "more" if part.more > 0 else "less"
    bar = f'<i class="{side}" style="width:{100 * share:.0f}%"></i>' if share else ""
    return f'<tr><td class="text">{escape(part.metric)}</td>{cells}<td class="bar">{bar}</td></tr>'
