"""Result of a run: why it ended and its Pareto front, as text or JSON."""

from __future__ import annotations

import typer

from dse.cli.options import OutputFormat, say, show_json
from dse.cli.output import failure_text as failures
from dse.core.judged_trials import read_judged
from dse.report.text.judged_table import print_judged
from dse.report.text.trial_tables import front_table
from dse.services.studies.status import ended_json
from dse.study.study_engine import StudyEngine

FELL_SHORT = 1
"""Exit status of a command that worked as requested, but with a negative result."""


def show_outcome(
    study: StudyEngine,
    reason: str,
    output: OutputFormat,
    *,
    quiet: bool,
    storage: str | None = None,
) -> None:
    """Print the result of a run.

    Args:
        study: the study after the run.
        reason: why the run ended.
        output: a table for people, or JSON.
        quiet: print no text and no table unless every feasible trial failed; JSON is printed in any
            case, because the user requested it.
        storage: the URL of the study's storage; default: the default storage.

    Raises:
        typer.Exit: with status 1, if every feasible trial failed.
    """
    finished = study.finished
    proof = study.proof
    in_vain = failures.are_in_vain(finished) or proof.in_vain
    if not quiet:
        say(f"{study.name}: {reason}")
    if not quiet or in_vain:
        for line in failures.lines(study.name, finished, storage=storage):
            say(line)
    if quiet and proof.in_vain and not finished:
        say(f"{study.name}: {proof.failed_words}")
    if output is OutputFormat.JSON:
        show_json(ended_json(study, reason))
    elif not quiet:
        front = study.front
        front_table(front, finished, proof=proof)
        print_judged(study.problem, front.trials, read_judged(study.events))
    if in_vain:
        raise typer.Exit(FELL_SHORT)
