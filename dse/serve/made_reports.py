"""HTML reports of one study, and comparisons of several studies."""

from __future__ import annotations

from collections.abc import Sequence

from dse.analysis.comparison import ComparisonOptions, compare
from dse.analysis.run_groups import alone, by_kind
from dse.analysis.runs import Run
from dse.report.html.comparison_page import comparison_html
from dse.serve.snapshot import Snapshot
from dse.services.studies.report import report_of


def report_text(snapshot: Snapshot) -> str:
    """Return the report of a study as one HTML page."""
    return report_of(snapshot.study, snapshot.front, snapshot.finished, snapshot.events)


def comparison_text(found: Sequence[Snapshot], *, seeds: bool, joint: bool) -> str:
    """Return a comparison of several studies as one HTML page.

    Args:
        found: the studies.
        seeds: whether studies that differ only in their seed form one group.
        joint: whether the worst of all fronts is the reference point, as it always is if no study
            states one.
    """
    runs = [
        Run.of(s.study.name, s.study.problem, s.finished, s.study.plan.budget.price_per_s)
        for s in found
    ]
    groups = by_kind(runs) if seeds else alone(runs)
    stated = any(s.study.problem.fixed_reference is not None for s in found)
    return comparison_html(compare(groups, ComparisonOptions(joint_nadir=joint or not stated)))
