"""Comparison of studies as one self-contained HTML page, and as a file by its extension."""

from __future__ import annotations

import json
from pathlib import Path

from dse.analysis.comparison import ComparisonResult
from dse.analysis.curves import curves
from dse.errors import StudyError
from dse.report.html.render import render_drawings, render_report
from dse.report.json.comparison_json import comparison_json
from dse.report.text.comparison_table import legend, rows_of
from dse.report.text.conclusion_sentences import (
    INDICATOR_WORDS,
    budget_sentence,
    indicator_text,
    verdicts,
)
from dse.report.words import join_list, reference_text


def comparison_html(comparison: ComparisonResult) -> str:
    """Return the HTML page of a comparison of groups of studies."""
    from dse.report.figures.attainment_figure import attainment_figures
    from dse.report.figures.indicator_curves import curve_figures

    return render_report(
        "comparison",
        title=join_list(group.name for group in comparison.groups),
        about=_about(comparison),
        verdicts=verdicts(comparison) or ["There is one group: nothing to compare it with."],
        rows=rows_of(comparison),
        legend=legend(comparison),
        curves=render_drawings(curve_figures(comparison, curves(comparison))),
        attained=render_drawings(attainment_figures(comparison)),
        studies=_studies(comparison),
    )


def _about(comparison: ComparisonResult) -> str:
    asked = join_list(f"{o.goal} {o.name}" for o in comparison.objectives)
    point = reference_text(comparison.objectives, comparison.reference_point)
    return (
        f"{asked}; {budget_sentence(comparison)}. "
        f"Reference point, from {comparison.reference_from}: {point}. "
        f"Joint front: {len(comparison.yardstick.joint)} designs."
    )


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
                *(indicator_text(comparison, name, one) for name, one in result.final.items()),
            ]
            for group in comparison.groups
            for result in group.results
        ),
    ]


def comparison_text(comparison: ComparisonResult, file: Path) -> str:
    """Return a comparison of studies as a file's content: HTML for ``.html``, JSON for ``.json``.

    Raises:
        StudyError: the file has another extension.
    """
    match file.suffix.lower():
        case ".html" | ".htm":
            return comparison_html(comparison)
        case ".json":
            return json.dumps(comparison_json(comparison), indent=2, allow_nan=False) + "\n"
        case ending:
            problem = f"a comparison cannot be written as {ending or 'a file without an ending'}"
            raise StudyError(problem, hint="name a file .html or .json")
