"""``dse effects``: main effects and interactions of parameters over the trials of a study."""

from __future__ import annotations

from typing import Annotated

import typer

from dse.cli.options import (
    Format,
    FormatOption,
    NameArgument,
    OutputOption,
    StorageOption,
    format_of,
)
from dse.cli.output.formats import write_result


def effects(
    name: NameArgument,
    *,
    metric: Annotated[
        list[str] | None,
        typer.Option(
            "--metric", "-m", help="A metric or an objective; default: all that the study uses."
        ),
    ] = None,
    storage: StorageOption = None,
    output: FormatOption = Format.TABLE,
    file: OutputOption = None,
) -> None:
    """Estimate main effects and pairwise interactions of parameters on each metric.

    For a full factorial (optimizer: factorial) this is an analysis of variance; for the trials of
    another optimizer it describes only the designs that it evaluated. If there are very many
    trials, a sample of them is drawn with the study's seed, and the output states so.

    Example: dse effects quickstart --metric chip.energy
    """
    from dse.cli.output.bar import progress_bar
    from dse.report import effect_tables as report
    from dse.services.studies.results_json import study_effects
    from dse.study.study_engine import StudyEngine

    study = StudyEngine.load(name, storage)
    output = format_of(output, file)
    with progress_bar("estimating", quiet=False) as on_progress:
        found = study_effects(study, metric or (), on_progress=on_progress)
    if output is Format.TABLE:
        for one in found:
            report.effects_table(study.problem, one)
        return
    facts = report.effects_json(study.name, study.problem, found)
    write_result(output, file, facts, lambda: report.effects_columns(found))
