"""HTML tables of trade-off rates between objectives along the front, and of limits."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from dse.analysis.limits import LOOSER, Activity, LimitRelaxation
from dse.analysis.trade_rates import Rate
from dse.core.objective import Objective
from dse.core.problem import Problem
from dse.report.html.render import call_macro
from dse.report.words import join_list, number_text

_LONG = 24


def rates_html(problem: Problem, rates: Sequence[Rate]) -> str:
    """Return a table of what steps along the front gain and cost, per pair of objectives.

    A step leads from one front design to another. The text is empty if there are no steps.
    """
    rows = [
        [
            problem.objectives[rate.first].name,
            problem.objectives[rate.second].name,
            rate.where,
            f"{rate.start.number} to {rate.end.number}",
            step_words(problem, rate),
            rate_words(problem, rate),
        ]
        for rate in rates
    ]
    heads = ["to better", "pay in", "where", "trials", "the step", "that is"]
    return _table(heads, rows) if rows else ""


def step_words(problem: Problem, rate: Rate) -> str:
    """Return a step between two front designs as ``3.1 nJ less energy for 234 ns more latency``."""
    first, second = problem.objectives[rate.first], problem.objectives[rate.second]
    better = "less" if first.goal == "minimize" else "more"
    worse = "more" if second.goal == "minimize" else "less"
    gain, price = _value(rate.gain, first), _value(rate.price, second)
    return f"{gain} {better} {first.name} for {price} {worse} {second.name}"


def rate_words(problem: Problem, rate: Rate) -> str:
    """Return what improving an objective by 1 % costs another: ``1 % (0.0098) costs 2.1 mJ``.

    The percentage refers to the objective's value before the step; if this is 0, return a dash.
    """
    first, second = problem.objectives[rate.first], problem.objectives[rate.second]
    hundredth = 0.01 * abs(rate.value)
    if not hundredth:
        return "-"
    price = _value(hundredth * rate.each, second)
    return f"1 % ({_value(hundredth, first)}) costs {price}"


def _value(value: float, objective: Objective) -> str:
    return number_text(value, objective.unit, written=objective.written)


def limits_html(problem: Problem, found: Sequence[Activity]) -> str:
    """Return a table of limits: the designs that each excludes, and what relaxing it gains."""
    rows = [
        [
            one.text,
            _binding(one),
            f"{one.broken:,} of {one.done:,}"
            + (f", {one.alone:,} by it alone" if one.broken else ""),
            f"{one.near:,}" if one.near else "-",
            _bought(problem, one.looser),
            _bought(problem, one.without),
        ]
        for one in found
    ]
    heads = [
        "limit",
        "binds",
        "designs that break it",
        "others at it",
        f"{100 * LOOSER:.0f} % looser buys",
        "without it",
    ]
    return _table(heads, rows) if rows else ""


def _binding(one: Activity) -> str:
    """Return ``yes`` if a limit binds (without it, some trial would be a better result), or ``no``.

    A limit that every trial violates is reported as such.
    """
    if one.broken == one.done:
        return "no trial keeps it"
    return "yes" if one.without else "no"


def _bought(problem: Problem, buys: Iterable[LimitRelaxation]) -> str:
    bought = []
    for one in buys:
        objective = problem.objectives[one.objective]
        now, then = (_value(value, objective) for value in (one.now, one.then))
        bought.append(f"{objective.name} {then} in place of {now} (trial {one.trial.number})")
    return join_list(bought) or "nothing among the trials"


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    sides = [_side(column) for column in zip(*rows, strict=True)]
    return call_macro("macros.html", "table", heads, rows, sides, breaks=True)


def _side(column: Sequence[str]) -> str:
    """Return the CSS class of a column; a column of long text is kept wide."""
    return "text told" if max(map(len, column)) > _LONG else "text"
