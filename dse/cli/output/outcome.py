"""Result of a run: its reason and front as text, or all of it as JSON."""

from __future__ import annotations

import typer

from dse.cli.options import OutputFormat, say, show_json
from dse.cli.output import errors as faults
from dse.report.text.tables import front_table
from dse.services.studies.status import ended_json
from dse.study.study import StudyEngine

FELL_SHORT = 1
"""The exit status where a command did what it was told, and the result is not what was hoped."""


def show_outcome(
    study: StudyEngine,
    reason: str,
    output: OutputFormat,
    *,
    quiet: bool,
    storage: str | None = None,
) -> None:
    """Print what a run came to.

    Args:
        study: the study as it stands.
        reason: why the run ended.
        output: a table for people, or JSON.
        quiet: no words and no table, unless everything failed; JSON is printed all the same, since
            it was asked for.
        storage: the URL of where the study is kept; the default one without.

    Raises:
        typer.Exit: with 1, where every trial that could exist failed.
    """
    finished = study.finished
    proof = study.proof
    in_vain = faults.are_in_vain(finished) or proof.in_vain
    if not quiet:
        say(f"{study.name}: {reason}")
    if not quiet or in_vain:
        for line in faults.lines(study.name, finished, storage=storage):
            say(line)
    if quiet and proof.in_vain and not finished:
        say(f"{study.name}: {proof.failed_words}")
    if output is OutputFormat.JSON:
        show_json(ended_json(study, reason))
    elif not quiet:
        front_table(study.front, finished, proof=proof)
    if in_vain:
        raise typer.Exit(FELL_SHORT)
