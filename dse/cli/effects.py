"""``dse effects``: what each parameter does to a metric, over the trials of a study."""

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
            "--metric", "-m", help="A metric or an objective; without, all that is asked."
        ),
    ] = None,
    storage: StorageOption = None,
    output: FormatOption = Format.TABLE,
    file: OutputOption = None,
) -> None:
    """Main effects and interactions of two parameters on each metric.

    Over a full factorial (optimizer: factorial) they are the analysis of variance; over the trials
    of another optimizer they describe what it looked at. Of very many trials a sample is taken, by
    the study's seed, and the answer says so.

    Example: dse effects quickstart --metric chip.energy
    """
    from dse.cli.output.bar import progress_bar
    from dse.report import effects as report
    from dse.services.studies.answer import study_effects
    from dse.study.study import StudyEngine

    study = StudyEngine.load(name, storage)
    output = format_of(output, file)
    with progress_bar("estimating", quiet=False) as on_progress:
        found = study_effects(study, metric or (), on_progress=on_progress)
    if output is Format.TABLE:
        for one in found:
            report.effects_table(study.problem, one)
        return
    told = report.effects_json(study.name, study.problem, found)
    write_result(output, file, told, lambda: report.effects_columns(found))
