"""Reports of what is watched: of one study, and of several beside each other."""

from __future__ import annotations

from collections.abc import Sequence

from dse.analysis.comparison import ComparisonOptions, compare
from dse.analysis.run_groups import alone, by_kind
from dse.analysis.runs import Run
from dse.report.html.comparison_page import comparison_html
from dse.serve.snapshot import Snapshot
from dse.services.studies.report import report_of


def report_text(snapshot: Snapshot) -> str:
    """The report of a study, as one page."""
    return report_of(snapshot.study, snapshot.front, snapshot.finished, snapshot.events)


def comparison_text(found: Sequence[Snapshot], *, seeds: bool, joint: bool) -> str:
    """Several studies side by side, as one page.

    Args:
        found: the studies.
        seeds: whether those that differ in nothing but their seed are one group.
        joint: whether the worst of all fronts is the reference point; it is where no study
            states one, for there is no other.
    """
    runs = [
        Run.of(s.study.name, s.study.problem, s.finished, s.study.plan.budget.price_per_s)
        for s in found
    ]
    groups = by_kind(runs) if seeds else alone(runs)
    stated = any(s.study.problem.fixed_reference is not None for s in found)
    return comparison_html(compare(groups, ComparisonOptions(joint_nadir=joint or not stated)))
