"""Terminal table that compares two designs, and sentences on preferences."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console
from rich.markup import escape

from dse.core.objective import Objective
from dse.core.problem import Problem
from dse.core.trial import Trial
from dse.report.answer import objective_values
from dse.report.text.terminal_table import Lane, print_lanes, results_console
from dse.report.words import metric_text, number_text, parameter_units, percent_text, value_text

BETTER = "*"
"""Mark of the better one of two values of an objective."""


def pair_table(
    problem: Problem, first: Trial, second: Trial, *, console: Console | None = None
) -> None:
    """Print two designs as columns: all objectives, then the metrics and parameters that differ.

    Args:
        problem: the problem of the study.
        first: the first trial.
        second: the second trial.
        console: where to print; by default the standard output.
    """
    console = console or results_console()
    pair = (first, second)
    values = objective_values(problem, pair)
    rows = [_compare(one, *values[:, at].tolist()) for at, one in enumerate(problem.objectives)]
    rows += [*_metric_rows(problem, pair), *_parameter_rows(problem, pair)]
    heads = [f"{place}: trial {trial.number}" for place, trial in enumerate(pair, start=1)]
    lanes = [
        Lane(heading="", cells=[row[0] for row in rows]),
        *(
            Lane(heading=head, cells=[row[place] for row in rows], right=True)
            for place, head in enumerate(heads, start=1)
        ),
    ]
    print_lanes(console, lanes)
    console.print(escape(f"{BETTER} better; all else is the same in both"), style="dim")


def favourite_words(trial: Trial, probability: float, answers: int) -> str:
    """Return a sentence on the user's favourite design and how sure the choice is.

    Args:
        trial: the favourite.
        probability: the probability that it loses at most 1 % of utility to the best design.
        answers: the number of the user's answers on which it is based.
    """
    many = f"{answers} answer{'s' if answers != 1 else ''}"
    sure = percent_text(min(probability, 0.999), 3 if probability > 0.99 else 2)
    return (
        f"favourite after {many}: trial {trial.number}; "
        f"probability {sure} that no design is more than 1 % better for you"
    )


def _compare(objective: Objective, first: float, second: float) -> tuple[str, str, str]:
    sign = 1.0 if objective.goal == "minimize" else -1.0
    texts = [number_text(v, objective.unit, written=objective.written) for v in (first, second)]
    marks = (sign * first < sign * second, sign * second < sign * first)
    cells = (f"{text} {BETTER if mark else ' '}" for text, mark in zip(texts, marks, strict=True))
    return (f"{objective.name} ({objective.goal})", *cells)  # type: ignore[return-value] # of two


def _metric_rows(problem: Problem, pair: tuple[Trial, Trial]) -> Iterable[tuple[str, str, str]]:
    """Yield the metrics that limits and compound objectives read, where they differ."""
    for name in sorted(problem.asked - {one.text for one in problem.objectives}):
        metric = problem.metrics[name]
        first, second = (metric_text(t.metrics.get(name), metric) for t in pair)
        if first != second:
            yield name, f"{first}  ", f"{second}  "


def _parameter_rows(problem: Problem, pair: tuple[Trial, Trial]) -> Iterable[tuple[str, str, str]]:
    for name, unit in parameter_units(problem).items():
        first, second = (value_text(trial.design.get(name), unit) for trial in pair)
        if first != second:
            yield name, f"{first}  ", f"{second}  "
