"""Terminal tables of fronts, trials and studies, and text on the uncertainty of a front."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.markup import escape

from dse.analysis.front_probability import DOUBT, in_doubt
from dse.core.pareto import ParetoSet
from dse.core.problem import Problem
from dse.core.proof import Proof
from dse.core.trial import Trial
from dse.core.trials import Trials
from dse.core.values import Floats
from dse.report.answer import Answer, broken_limits, objective_values
from dse.report.text.space_words import big
from dse.report.text.summary import common_words
from dse.report.text.terminal_table import Lane, print_fitting_tables, print_lanes, results_console
from dse.report.words import (
    broken_text,
    metric_text,
    number_text,
    parameter_units,
    reference_text,
    seconds_text,
    value_text,
    volume_text,
)

MAX_ROWS = 500
"""Maximum number of trials that are printed; of more, the latest."""

_MOST_DOUBTFUL = 12
"""Maximum number of doubtful trials that are named."""


def front_table(
    front: ParetoSet,
    trials: Sequence[Trial] = (),
    *,
    proof: Proof,
    heading: str = "",
    console: Console | None = None,
) -> None:
    """Print the front or, where no design is feasible, the trials nearest to feasible.

    Args:
        front: the front.
        trials: all finished trials, of which the nearest to feasible are used.
        proof: the statement on how far the front is proved exact.
        heading: the first line; by default the size of the front and its hypervolume.
        console: where to print; by default the standard output.
    """
    console = console or results_console()
    answer = Answer.of(front, trials)
    console.print(escape(heading or _summary(front, answer, trials, proof)), style="bold")
    if proof.failed_words:
        console.print(escape(proof.failed_words), style="yellow")
    if answer.common:
        console.print(escape(f"the same in all: {common_words(answer)}"))
    if answer.trials:
        results = _objective_lanes(front.problem, answer.trials, answer.values)
        more = [_metric_lane(answer, name) for name in answer.other_metrics]
        names = answer.varying or tuple(answer.trials[0].design)
        settings = _parameter_lanes(front.problem, answer.trials, names)
        print_fitting_tables(console, _answer_key(front, answer), results, settings, more=more)
    for place, trial in enumerate(answer.trials):
        if answer.broken[place]:
            words = f"trial {trial.number}: {broken_text(answer.problem, answer.broken[place])}"
            console.print(escape(words), style="yellow")


def trials_table(
    problem: Problem, trials: Sequence[Trial], *, console: Console | None = None
) -> None:
    """Print the latest trials; infeasible and failed ones with the reason."""
    console = console or results_console()
    earlier = max(len(trials) - MAX_ROWS, 0)
    trials = trials[earlier:]
    reasons = [
        f"{trial.failure.kind}: {trial.failure.reason}"
        if trial.failure
        else broken_text(problem, broken)
        for trial, broken in zip(trials, broken_limits(problem, trials), strict=True)
    ]
    results = [
        Lane(heading="state", cells=[trial.state.value for trial in trials]),
        *_objective_lanes(problem, trials, objective_values(problem, trials)),
        Lane(heading="cost", cells=[_cost(trial) for trial in trials], right=True),
    ]
    names = [parameter.name for parameter in problem.space.parameters]
    key = Lane(heading="trial", cells=[str(trial.number) for trial in trials], right=True)
    settings = _parameter_lanes(problem, trials, names)
    if any(reasons):
        settings.append(Lane(heading="reason", cells=reasons))
    print_fitting_tables(console, key, results, settings)
    if earlier:
        console.print(f"{earlier} earlier trials are left out; JSON and CSV have all", style="dim")


def studies_table(rows: Sequence[Mapping[str, Any]], *, console: Console | None = None) -> None:
    """Print a line for each study; a study is a mapping from column headings to cells."""
    lanes = [
        Lane(
            heading=heading,
            cells=[str(row[heading]) for row in rows],
            right=all(isinstance(row[heading], int | float) for row in rows),
        )
        for heading in (rows[0] if rows else ())
    ]
    if lanes:
        print_lanes(console or results_console(), lanes)


def _answer_key(front: ParetoSet, answer: Answer) -> Lane:
    knee = front.knee if len(front.trials) > 2 else None
    marks = ["knee " if trial is knee else "" for trial in answer.trials]
    numbers = [trial.number for trial in answer.trials]
    cells = [f"{mark}{number}" for mark, number in zip(marks, numbers, strict=True)]
    return Lane(heading="trial", cells=cells, right=True)


def _objective_lanes(problem: Problem, trials: Sequence[Trial], values: Floats) -> list[Lane]:
    return [
        Lane(
            heading=f"{o.name}\n({o.goal})",
            cells=[
                number_text(value, o.unit, trial.spread.get(o.text), o.written)
                for value, trial in zip(column.tolist(), trials, strict=True)
            ],
            right=True,
        )
        for o, column in zip(problem.objectives, values.T, strict=True)
    ]


def _metric_lane(answer: Answer, name: str) -> Lane:
    metric = answer.problem.metrics[name]
    cells = [metric_text(t.metrics.get(name), metric, t.spread.get(name)) for t in answer.trials]
    return Lane(heading=name, cells=cells, right=True)


def _parameter_lanes(problem: Problem, trials: Sequence[Trial], names: Iterable[str]) -> list[Lane]:
    units = parameter_units(problem)
    return [
        Lane(
            heading=name,
            cells=[
                value_text(t.design[name], units[name]) if name in t.design else "" for t in trials
            ],
            right=not any(isinstance(t.design.get(name), str | bool) for t in trials),
        )
        for name in names
    ]


def _cost(trial: Trial) -> str:
    return seconds_text(trial.cost_s) if trial.state.finished else ""


def _summary(front: ParetoSet, answer: Answer, trials: Sequence[Trial], proof: Proof) -> str:
    if not answer.trials and proof.searched:
        return f"no front: none of {big(proof.of)} legal designs has a value"
    if not answer.trials:
        tried = int(Trials.of(trials).over.sum())
        words = f"none of {tried} evaluated designs has a number for each objective"
        return f"{words}: dse trials shows why" if tried else "no design has been evaluated yet"
    if not answer.feasible:
        return "NO DESIGN KEEPS EVERY LIMIT; these miss by least"
    many = f"{len(answer.trials)} design{'s' if len(answer.trials) != 1 else ''}"
    kind = proof.front_words
    if front.reference_point is None or front.hypervolume_share is None:
        return f"{kind}: {many}"
    point = reference_text(front.problem.objectives, front.reference_point)
    return f"{kind}: {many}, hypervolume {volume_text(front)} (reference point: {point})"


def doubt_words(chances: Mapping[int, float]) -> str:
    """Return a text on the trials that metric errors may put on or off the Pareto front.

    ``chances`` are the probabilities that the trials are on the front. The text is empty if no
    metric has a standard error.
    """
    if not chances:
        return ""
    found = in_doubt(chances)
    low, high = (f"{100 * share:g} %" for share in DOUBT)
    if not found:
        return f"no trial's place on the front is in doubt (between {low} and {high})"
    each = [f"trial {number} ({100 * chance:.0f} %)" for number, chance in found.items()]
    more = f" and {len(each) - _MOST_DOUBTFUL} more" if len(each) > _MOST_DOUBTFUL else ""
    return f"in doubt, with the chance to be on the front: {', '.join(each[:_MOST_DOUBTFUL])}{more}"
