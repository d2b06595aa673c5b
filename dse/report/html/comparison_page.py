"""Comparison as one self-contained HTML page."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from dse.analysis.comparison import ComparisonResult
from dse.analysis.curves import curves
from dse.report.html.page_parts import page, render_drawings, section
from dse.report.text.comparison_table import legend, rows_of
from dse.report.text.conclusions import INDICATOR_WORDS, budget_sentence, verdicts
from dse.report.words import join_list, reference_text


def comparison_html(comparison: ComparisonResult) -> str:
    """Return the page as HTML, ready to be written to a file."""
    from dse.report.figures.attainment import attainment_figures
    from dse.report.figures.curves import curve_figures

    names = join_list(group.name for group in comparison.groups)
    figures = curve_figures(comparison, curves(comparison))
    body = [
        f"<header><h1>{escape(names)}</h1><p>{escape(_about(comparison))}</p></header>",
        section("What can be claimed", _sentences(comparison)),
        section("Side by side", _table(rows_of(comparison)) + _note(legend(comparison))),
        section("On the way", f'<div class="figures">{render_drawings(figures)}</div>'),
        section("What is attained", _figures(render_drawings(attainment_figures(comparison)))),
        section("Every study", _table(_studies(comparison))),
    ]
    return page(names, body)


def _about(comparison: ComparisonResult) -> str:
    asked = join_list(f"{o.goal} {o.name}" for o in comparison.objectives)
    point = reference_text(comparison.objectives, comparison.reference_point)
    return (
        f"{asked}; {budget_sentence(comparison)}. "
        f"Reference point, from {comparison.reference_from}: {point}. "
        f"Joint front: {len(comparison.yardstick.joint)} designs."
    )


def _sentences(comparison: ComparisonResult) -> str:
    told = verdicts(comparison) or ["There is one group: nothing to compare it with."]
    return '<ul class="words">' + "".join(f"<li>{escape(one)}</li>" for one in told) + "</ul>"


def _figures(content: str) -> str:
    return f'<div class="figures">{content}</div>' if content else ""


def _note(words: str) -> str:
    return f'<p class="soft">{escape(words)}</p>'


def _studies(comparison: ComparisonResult) -> list[list[str]]:
    words = [INDICATOR_WORDS[name] for name in comparison.groups[0].results[0].final]
    spent = tuple(dict.fromkeys(("trials", *comparison.currencies)))
    headings = ["study", "group", "seed", *spent, "front", *words]
    return [
        headings,
        *(
            [
                result.name,
                group.name,
                str(result.seed),
                *(f"{result.totals[each]:.6g}" for each in spent),
                str(result.front),
                *(f"{value:.6g}" for value in result.final.values()),
            ]
            for group in comparison.groups
            for result in group.results
        ),
    ]


def _table(rows: Sequence[Sequence[str]]) -> str:
    head = "".join(f'<th><button type="button">{escape(cell)}</button></th>' for cell in rows[0])
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows[1:]
    )
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    return f'<div class="box scroll">{table}</div>'
