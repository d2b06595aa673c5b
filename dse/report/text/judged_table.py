"""Tables of a front on the test split, next to its values in the search."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.markup import escape

from dse.analysis.judged_front import WIDTH, JudgedFront, judge_front
from dse.core.judged_trials import JudgedTrial
from dse.core.problem import Problem
from dse.core.trial import Trial
from dse.report.answer import objective_values
from dse.report.json.front_json import finite
from dse.report.schemas.front_schema import JudgedFacts
from dse.report.text.terminal_table import Lane, print_lanes, results_console
from dse.report.words import number_text

HEADING = "measured on the test split, which the search does not use"
_MOST_ALIKE = 6
"""Maximum number of trials that one row names as alike."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedTable:
    """Table of a front on the test split: headings, and cells by row.

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
        problem: Problem, trials: Sequence[Trial], judged: Mapping[int, JudgedTrial]
    ) -> JudgedTable | None:
        """Return the table of a front on the test split; ``None`` if no design was measured there.

        Args:
            problem: the objectives and limits.
            trials: the trials of the front.
            judged: results on the test split, by number of the trial.
        """
        front = judge_front(problem, trials, judged)
        return None if front is None else _table(problem, trials, front)


def print_judged(
    problem: Problem,
    trials: Sequence[Trial],
    judged: Mapping[int, JudgedTrial],
    *,
    console: Console | None = None,
) -> None:
    """Print a front on the test split; print nothing if it was not measured there.

    Args:
        problem: the objectives and limits.
        trials: the trials of the front.
        judged: results on the test split, by number of the trial.
        console: where to print; by default the standard output.
    """
    table = JudgedTable.of(problem, trials, judged)
    if table is None:
        return
    console = console or results_console()
    console.print(HEADING, style="bold")
    columns = zip(table.headings, zip(*table.rows, strict=True), strict=True)
    print_lanes(
        console,
        [
            Lane(heading=heading, cells=cells, right=place <= 2 * len(problem.objectives))
            for place, (heading, cells) in enumerate(columns)
        ],
    )
    for remark in table.remarks:
        console.print(escape(remark))


def judged_facts(front: JudgedFront | None, number: int) -> JudgedFacts | None:
    """Return a trial's result on the test split as JSON; ``None`` if it was not measured there."""
    row = None if front is None else front.by_trial.get(number)
    if row is None:
        return None
    return {
        "objectives": [finite(value) for value in row.values],
        "stderr": [finite(error) for error in row.stderr],
        "feasible": row.feasible,
        "alike": list(row.alike),
        "fault": row.failure,
    }


def _table(problem: Problem, trials: Sequence[Trial], front: JudgedFront) -> JudgedTable:
    by_number = {trial.number: trial for trial in trials}
    shown = [place for place, depends in enumerate(front.depends) if depends]
    shown = shown or list(range(len(front.depends)))
    searched = objective_values(problem, [by_number[row.trial] for row in front.rows]).tolist()
    objectives = [problem.objectives[place] for place in shown]
    headings = ["trial"]
    headings += [f"{o.name}\n{part}" for o in objectives for part in ("(search)", "(test)")]
    rows: list[tuple[str, ...]] = []
    for row, values in zip(front.rows, searched, strict=True):
        spread = by_number[row.trial].spread
        cells = [str(row.trial)]
        for place, o in zip(shown, objectives, strict=True):
            test = row.values[place] if row.values else None
            error = row.stderr[place] if row.stderr else None
            cells.append(number_text(values[place], o.unit, spread.get(o.text), o.written))
            cells.append(number_text(test, o.unit, error, o.written))
        rows.append((*cells, alike_text(row.alike), row.failure or _limit_text(row.feasible)))
    headings += ["not distinguished from trials", "remark"]
    if not any(row[-1] for row in rows):
        headings, rows = headings[:-1], [row[:-1] for row in rows]
    return JudgedTable(headings=tuple(headings), rows=tuple(rows), remarks=_remarks(front))


def _limit_text(feasible: bool) -> str:  # noqa: FBT001 - the only argument
    return "" if feasible else "breaks a limit"


def alike_text(alike: Sequence[int]) -> str:
    """Return the numbers of trials that cannot be distinguished; of many, only the first."""
    more = f" and {len(alike) - _MOST_ALIKE} more" if len(alike) > _MOST_ALIKE else ""
    return ", ".join(map(str, alike[:_MOST_ALIKE])) + more


def _remarks(front: JudgedFront) -> tuple[str, ...]:
    if not front.is_compared:
        known = [row for row in front.rows if not row.failure]
        if len(known) < 2:
            return ()
        return ("standard errors are not known for all designs: differences may be noise",)
    pairs = "of the paired difference" if front.is_paired else "of the difference"
    return (
        f"trials that differ by at most {WIDTH:g} standard errors {pairs} are not distinguished",
    )
