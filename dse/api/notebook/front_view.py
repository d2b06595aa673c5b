"""Notebook view of a Pareto front: its plot, and a table of its designs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from dse.api.notebook.parts import TableColumn, framed, note, side_by_side, table
from dse.api.notebook.points import points_of
from dse.api.notebook.study_plot import picture
from dse.core.judged_trials import JudgedTrial
from dse.core.pareto import ParetoSet
from dse.core.proof import Proof
from dse.core.trial import Trial
from dse.core.trials import Trials
from dse.report.answer import Answer
from dse.report.text.judged_table import HEADING, JudgedTable
from dse.report.text.summary import common_words
from dse.report.words import (
    broken_text,
    join_list,
    number_text,
    parameter_units,
    reference_text,
    value_text,
    volume_text,
)

MOST_ROWS = 12
MOST_PARAMETERS = 10
"""Maximum numbers of designs and parameters shown (the knee always is); data frames have all."""

_FRAME = ".to_pandas()"


def front_html(
    name: str,
    front: ParetoSet,
    trials: Sequence[Trial],
    *,
    proof: Proof,
    judged: Mapping[int, JudgedTrial] = MappingProxyType({}),
) -> str:
    """Return the HTML view of the Pareto front of a study.

    Args:
        name: the study's name.
        front: the trials of the front with their losses.
        trials: all finished trials, in the order of completion.
        proof: for how many designs the front is proved exact, and how many have no metric values.
        judged: results on the test split, by number of the trial.
    """
    answer = Answer.of(front, trials)
    kept = Trials.of(trials if len(trials) else front.trials)
    return framed(
        f"{'Exact front' if proof.exact else 'Front'} of {name}",
        side_by_side(
            picture(points_of(front, kept), front.problem.objectives, name),
            _table(front, answer)
            + note(_missing(answer))
            + note(failed_note(proof))
            + _judged(front, judged),
        ),
        beside=summary(front, answer),
    )


def _judged(front: ParetoSet, judged: Mapping[int, JudgedTrial]) -> str:
    """Return the front on the test split as a table; empty if it was not measured there."""
    found = JudgedTable.of(front.problem, front.trials, judged)
    if found is None:
        return ""
    columns = [
        TableColumn(heading=heading, cells=list(cells))
        for heading, cells in zip(found.headings, zip(*found.rows, strict=True), strict=True)
    ]
    return note(HEADING) + table(columns) + "".join(map(note, found.remarks))


def failed_note(proof: Proof) -> str:
    """Return a note on failed designs, and on how many designs the front is exact over.

    The note names one of the failed designs. It is empty if no design failed.
    """
    if not proof.failed_words:
        return ""
    return f"{proof.search_words}; {proof.failed_words}" if proof.searched else proof.failed_words


def summary(front: ParetoSet, answer: Answer) -> str:
    """Return the number of designs on the front and their hypervolume, as text."""
    if not answer.trials:
        return "no design has a number for each objective yet"
    if not answer.feasible:
        return "no design satisfies every limit"
    many = f"{len(front.trials):,} design{'s' if len(front.trials) != 1 else ''}"
    if front.reference_point is None or front.hypervolume_share is None:
        return many
    point = reference_text(front.problem.objectives, front.reference_point)
    return f"{many}, hypervolume {volume_text(front)} (reference point: {point})"


def _table(front: ParetoSet, answer: Answer) -> str:
    knee = front.knee if len(front.trials) > 2 else None
    shown = answer.thin(MOST_ROWS, knee)
    columns = [_trials(shown, knee), *_objectives(shown), *_parameters(answer, shown)]
    if any(shown.broken):
        broken = [broken_text(answer.problem, one) for one in shown.broken]
        columns.append(TableColumn(heading="misses", cells=broken))
    misses = "" if answer.feasible or not answer.trials else "these violate the limits least:"
    return note(misses) + table(columns) + note(_rest(answer, shown))


def _trials(shown: Answer, knee: Trial | None) -> TableColumn:
    cells = [f"{'knee ' if trial is knee else ''}{trial.number}" for trial in shown.trials]
    return TableColumn(heading="trial", cells=cells, number=True)


def _objectives(shown: Answer) -> list[TableColumn]:
    return [
        TableColumn(
            heading=one.name,
            note=one.goal,
            number=True,
            cells=[
                number_text(value, one.unit, trial.spread.get(one.text), one.written)
                for value, trial in zip(column.tolist(), shown.trials, strict=True)
            ],
        )
        for one, column in zip(shown.problem.objectives, shown.values.T, strict=True)
    ]


def _parameters(answer: Answer, shown: Answer) -> list[TableColumn]:
    units = parameter_units(answer.problem)
    names = answer.varying[:MOST_PARAMETERS]
    return [
        TableColumn(
            heading=name,
            cells=[value_text(trial.design.get(name), units[name]) for trial in shown.trials],
            number=not any(isinstance(t.design.get(name), str | bool) for t in shown.trials),
        )
        for name in names
    ]


def _rest(answer: Answer, shown: Answer) -> str:
    """Return how many designs and parameters the table omits, and how to get them, as text."""
    designs = len(answer.trials) - len(shown.trials)
    parameters = len(answer.varying) - MOST_PARAMETERS
    words = [
        f"{designs:,} more design{'s' if designs > 1 else ''}" if designs > 0 else "",
        f"{parameters} more parameter{'s' if parameters > 1 else ''}" if parameters > 0 else "",
    ]
    listed = join_list([word for word in words if word])
    return f"and {listed}: {_FRAME}" if listed else ""


def _missing(answer: Answer) -> str:
    return f"the same in all: {common_words(answer)}" if answer.common else ""
