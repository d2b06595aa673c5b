"""Notebook view of a comparison: indicators of each group of studies, and conclusions."""

from __future__ import annotations

from dse.analysis.comparison import ComparisonResult
from dse.api.notebook.parts import TableColumn, framed, note, paragraphs, table
from dse.report.text.comparison_table import legend, rows_of
from dse.report.text.conclusion_sentences import budget_sentence, verdicts
from dse.report.words import reference_text


def comparison_html(found: ComparisonResult) -> str:
    """Return a comparison of studies as an HTML table: groups, indicators and verdicts."""
    point = reference_text(found.objectives, found.reference_point)
    (_, *names), *groups = rows_of(found)
    columns = [TableColumn(heading=name, cells=cells, number=True) for name, *cells in groups]
    return framed(
        "Comparison",
        note(f"{budget_sentence(found)}; reference point, from {found.reference_from}: {point}"),
        table([TableColumn(heading="", cells=names), *columns]),
        paragraphs(verdicts(found)),
        note(legend(found)),
        beside=f"joint front: {len(found.yardstick.joint):,} designs",
    )
