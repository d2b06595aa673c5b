"""Table of a front's model errors, and the designs that these errors cannot tell apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.markup import escape

from dse.analysis.error_intervals import ErrorIntervals, IntervalRow
from dse.analysis.judged_front import WIDTH
from dse.core.problem import Problem
from dse.core.trial import Trial
from dse.report.answer import objective_values
from dse.report.schemas.front_schema import IntervalFacts
from dse.report.text.judged_table import alike_text
from dse.report.text.terminal_table import Lane, print_lanes, results_console
from dse.report.words import number_text

INTERVAL_HEADING = "error of the models on measurements that they were not fitted to"
_MOST_ROWS = 30
"""Maximum number of designs in the terminal; the report and JSON have all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IntervalTable:
    """Table of the errors of a front's modelled objectives: headings, and cells by row.

    Args:
        headings: the columns' headings.
        rows: the cells of each design.
        remarks: sentences that follow the table.
    """

    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    remarks: tuple[str, ...]

    @staticmethod
    def of(
        problem: Problem, trials: Sequence[Trial], found: ErrorIntervals | None
    ) -> IntervalTable | None:
        """Return the table of a front's model errors; ``None`` if no model states its errors.

        Args:
            problem: the objectives and limits.
            trials: the trials of the front.
            found: the errors of the trials' objectives.
        """
        if found is None:
            return None
        shown = [place for place, depends in enumerate(found.depends) if depends]
        objectives = [problem.objectives[place] for place in shown]
        headings = ["trial", *(o.name for o in objectives)]
        headings += ["not distinguished from trials", "error measured on"]
        rows = []
        values = objective_values(problem, trials).tolist()
        for row, own in zip(found.rows, values, strict=True):
            cells = [
                f"{number_text(own[place], o.unit, None, o.written)} {_width_text(row, place)}"
                for place, o in zip(shown, objectives, strict=True)
            ]
            groups = "; ".join(row.groups)
            rows.append((str(row.trial), *cells, alike_text(row.alike), groups))
        return IntervalTable(headings=tuple(headings), rows=tuple(rows), remarks=_remarks(found))


def print_intervals(
    problem: Problem,
    trials: Sequence[Trial],
    found: ErrorIntervals | None,
    *,
    console: Console | None = None,
) -> None:
    """Print the errors of modelled objectives; print nothing if no model states them.

    Args:
        problem: the objectives and limits.
        trials: the trials of the front.
        found: the errors of the trials' objectives.
        console: where to print; by default the standard output.
    """
    table = IntervalTable.of(problem, trials, found)
    if table is None or found is None:
        return
    console = console or results_console()
    console.print(INTERVAL_HEADING, style="bold")
    rows = table.rows[:_MOST_ROWS]
    columns = zip(table.headings, zip(*rows, strict=True), strict=True)
    print_lanes(
        console,
        [
            Lane(heading=heading, cells=cells, right=place <= sum(found.depends))
            for place, (heading, cells) in enumerate(columns)
        ],
    )
    if len(table.rows) > len(rows):
        left = len(table.rows) - len(rows)
        console.print(
            f"{left} more designs are left out; JSON and the report have all", style="dim"
        )
    for remark in table.remarks:
        console.print(escape(remark))


def interval_facts(found: ErrorIntervals, number: int) -> IntervalFacts | None:
    """Return the errors of a trial's objectives as JSON; ``None`` if no model states them."""
    row = found.by_trial.get(number)
    if row is None:
        return None
    return {
        "width": list(row.width),
        "origin": list(row.origin),
        "groups": list(row.groups),
        "alike": list(row.alike),
    }


def _width_text(row: IntervalRow, place: int) -> str:
    width, origin = row.width[place], row.origin[place]
    share = "error unknown" if width is None else f"± {100 * width:.0f} %"
    if origin == "held out":
        return share
    return f"{share} ({origin})"


def _remarks(found: ErrorIntervals) -> tuple[str, ...]:
    if not found.is_known:
        return ("the error is not known for all objectives: differences may be the model's error",)
    if not found.is_compared:
        return ("there are too many designs to compare each with each",)
    remarks = [
        f"trials that differ by at most {WIDTH:g} standard errors of the difference are not "
        "distinguished: the order of their modelled values may be the model's error"
    ]
    if any({"extrapolated", "data sheet only"} & set(row.origin) for row in found.rows):
        remarks.append(
            "extrapolated, data sheet only: the error is that of the nearest group that was "
            "measured, and may be larger"
        )
    return tuple(remarks)
