"""Exchange rates along the front, and what each limit costs, as the page tells them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from dse.analysis.exchange import Rate
from dse.analysis.limits import LOOSER, Activity, Buys
from dse.core.problem import Problem
from dse.report.words import joined, number_text


def rates_html(problem: Problem, rates: Sequence[Rate]) -> str:
    """A table of steps along the front of each two objectives; nothing without a step."""
    rows = [
        [
            problem.objectives[rate.first].name,
            problem.objectives[rate.second].name,
            rate.where,
            f"{rate.start.number} to {rate.end.number}",
            rate_words(problem, rate),
        ]
        for rate in rates
    ]
    return _table(["more of", "for", "where", "trials", "rate"], rows) if rows else ""


def rate_words(problem: Problem, rate: Rate) -> str:
    """``1 % more accuracy costs 2.1 mJ``: a share where the gaining objective has no unit."""
    first, second = problem.objectives[rate.first], problem.objectives[rate.second]
    best = "less" if first.goal == "minimize" else "more"
    gain, price = number_text(rate.gain, first.unit), number_text(rate.price, second.unit)
    worse = "more" if second.goal == "minimize" else "less"
    told = f"{gain} {best} {first.name} for {price} {worse} {second.name}"
    if first.unit:
        return told
    return f"{told}; 0.01 costs {number_text(0.01 * rate.each, second.unit)}"


def limits_html(problem: Problem, found: Sequence[Activity]) -> str:
    """A table of limits: whom each rules out, and what giving way would buy."""
    rows = [
        [
            one.text,
            f"{one.broken} of {one.done}" + (f", {one.alone} by it alone" if one.broken else ""),
            str(one.near) if one.near else "-",
            _bought(problem, one.looser),
            _bought(problem, one.without),
        ]
        for one in found
    ]
    heads = ["limit", "breaks it", "at it", f"{100 * LOOSER:.0f} % looser buys", "without it"]
    return _table(heads, rows) if rows else ""


def _bought(problem: Problem, buys: Iterable[Buys]) -> str:
    told = []
    for one in buys:
        objective = problem.objectives[one.objective]
        now, then = (number_text(value, objective.unit) for value in (one.now, one.then))
        told.append(f"{objective.name} {then} in place of {now} (trial {one.trial.number})")
    return joined(told) or "nothing among the trials"


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    head = "".join(f'<th scope="col" class="text">{escape(one)}</th>' for one in heads)
    body = "".join(
        "<tr>" + "".join(f'<td class="text">{escape(cell)}</td>' for cell in row) + "</tr>"
        for row in rows
    )
    return (
        '<div class="box scroll"><table>'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )
