"""Main effects and interactions of parameters on a metric, as tables, JSON, columns and HTML."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.console import Console
from rich.markup import escape as plain

from dse.analysis.effects import Effect, Effects, Level
from dse.core.problem import Problem
from dse.core.values import Value
from dse.report.html.render import render
from dse.report.json.front_json import finite
from dse.report.schemas.effects_schema import EffectFacts, EffectsFacts
from dse.report.text.terminal_table import Lane, print_lanes, results_console
from dse.report.words import join_list, number_text, parameter_units, value_text

SHOWN = 10
"""Maximum number of interactions that are printed; JSON and CSV contain all."""

_NOTE = (
    "share: the part of the variance that this term alone explains; '-' where it cannot be"
    " separated from the other terms"
)


def effects_table(problem: Problem, found: Effects, *, console: Console | None = None) -> None:
    """Print tables of one metric's main effects and of its largest interactions."""
    console = console or results_console()
    console.print(plain(headline(found)), style="bold")
    for headings, rows in (_main_rows(problem, found), _pair_rows(found)):
        if rows:
            columns = zip(*rows, strict=True)
            lanes = [
                Lane(heading=heading, cells=list(cells), right=place in (1, 2))
                for place, (heading, cells) in enumerate(zip(headings, columns, strict=True))
            ]
            print_lanes(console, lanes)
    console.print(_NOTE, style="dim")


def headline(found: Effects) -> str:
    """Return a line on a metric: mean, standard deviation, variance share of all main effects."""
    amount = number_text(found.mean, found.unit)
    spread = number_text(found.deviation, found.unit)
    drawn = f" drawn of {found.of} by seed {found.seed}" if found.seed is not None else ""
    over = f"{found.trials} designs{drawn}"
    return (
        f"{found.name}: mean {amount}, standard deviation {spread} over {over}; "
        f"main effects explain {100 * found.additive:.3g} % of the variance{_left_out(found)}"
    )


def _left_out(found: Effects) -> str:
    """Return a clause that names the parameters with too many values to estimate their effects."""
    every = join_list(found.left_out)
    pairs = join_list(found.unpaired)
    note = f"; no effect is estimated for {every} (too many values)" if every else ""
    return note + (f"; no interaction is estimated for {pairs} (too many values)" if pairs else "")


def effects_json(study: str, problem: Problem, found: Sequence[Effects]) -> EffectsFacts:
    """Return all metrics' effects as a JSON object; ``null`` where a share is unknown."""
    return {
        "study": study,
        "parameters": parameter_units(problem),
        "effects": [
            {
                "metric": one.name,
                "unit": one.unit,
                "trials": one.trials,
                "of": one.of,
                "seed": one.seed,
                "left_out": list(one.left_out),
                "unpaired": list(one.unpaired),
                "mean": finite(one.mean),
                "standard_deviation": finite(one.deviation),
                "additive_share": finite(one.additive),
                "main": [_main(effect) for effect in one.main],
                "interactions": [
                    {"parameters": list(pair.parameters), "share": finite(pair.share)}
                    for pair in one.interactions
                ],
            }
            for one in found
        ],
    }


def effects_columns(found: Sequence[Effects]) -> Mapping[str, Sequence[Value | None]]:
    """Return the effects as export columns: a row per level or interaction of each metric."""
    rows = [row for one in found for row in _flat(one)]
    names = ("metric", "unit", "parameter", "with", "share", "from", "to", "mean", "trials")
    return {name: [row.get(name) for row in rows] for name in names}


def effects_html(problem: Problem, found: Sequence[Effects]) -> str:
    """Return the tables of all metrics' effects as HTML; empty without effects."""
    if not found:
        return ""
    sections = [(headline(one), [_main_rows(problem, one), _pair_rows(one)]) for one in found]
    return render("report/effects.html", effects=sections, note=_NOTE)


def level_text(level: Level, unit: str) -> str:
    """Return a parameter level as text: its value, or the range of its group of values."""
    low, high = value_text(level.value, unit), value_text(level.to, unit)
    return low if low == high else f"{low} .. {high}"


def _main_rows(problem: Problem, found: Effects) -> tuple[list[str], list[list[str]]]:
    units = parameter_units(problem)
    rows = [
        [
            effect.parameter,
            share_text(effect.share),
            number_text(effect.span, found.unit),
            ", ".join(
                f"{level_text(one, units[effect.parameter])}: {number_text(one.mean, found.unit)}"
                for one in effect.levels
            ),
        ]
        for effect in found.main
    ]
    return ["main effect", "share", "span", "mean at each level"], rows


def _pair_rows(found: Effects) -> tuple[list[str], list[list[str]]]:
    rows = [
        [" x ".join(pair.parameters), share_text(pair.share)]
        for pair in found.interactions[:SHOWN]
        if pair.share is None or pair.share >= 5e-4
    ]
    return ["interaction", "share"], rows


def share_text(share: float | None) -> str:
    """Return a share of the variance as a percentage text."""
    return "-" if share is None else f"{100 * share:.1f} %"


def _main(effect: Effect) -> EffectFacts:
    return {
        "parameter": effect.parameter,
        "share": finite(effect.share),
        "span": finite(effect.span),
        "levels": [
            {"value": one.value, "to": one.to, "mean": finite(one.mean), "trials": one.trials}
            for one in effect.levels
        ],
    }


def _flat(found: Effects) -> list[dict[str, Value | None]]:
    shared: dict[str, Value | None] = {"metric": found.name, "unit": found.unit}
    levels = [
        {
            **shared,
            "parameter": effect.parameter,
            "share": finite(effect.share),
            "from": None if one.value is None else str(one.value),
            "to": None if one.to is None else str(one.to),
            "mean": finite(one.mean),
            "trials": one.trials,
        }
        for effect in found.main
        for one in effect.levels
    ]
    pairs = [
        {
            **shared,
            "parameter": pair.parameters[0],
            "with": pair.parameters[1],
            "share": finite(pair.share),
        }
        for pair in found.interactions
    ]
    return [*levels, *pairs]
