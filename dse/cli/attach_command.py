"""``dse attach``: known results from a table become finished trials of a study."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dse.cli.options import (
    JsonOrTableOption,
    NameArgument,
    OutputFormat,
    StorageOption,
    say,
    show_json,
)


def attach(
    name: NameArgument,
    table: Annotated[
        Path,
        typer.Argument(
            help="CSV table with a column per parameter and measured metric, "
            "or results of Kernel Tuner (T4, .json).",
            show_default=False,
        ),
    ],
    *,
    storage: StorageOption = None,
    output: JsonOrTableOption = OutputFormat.TABLE,
) -> None:
    """Attach results that are known already to a study, as finished trials.

    Columns are matched by name; a metric is EVALUATOR.METRIC, and its unit may follow in brackets.
    In a file of Kernel Tuner, the measurement time is the metric EVALUATOR.time, and failed
    configurations become failed trials. A row is left out if its design is not legal, if the design
    already has a trial, or if a measured metric is missing. Models compute the other metrics. The
    trials do not count towards the budget, and dse verify lists them as attached.

    Example: dse attach quickstart results.csv
    """
    from dse.services.studies.attach_table import attach_table
    from dse.study.study_engine import StudyEngine

    facts = attach_table(StudyEngine.load(name, storage), table)
    if output is OutputFormat.JSON:
        show_json(facts)
        return
    for reason, count in facts["left_out"].items():
        say(f"note: {count} left out: {reason}")
    first, last = facts["first"], facts["first"] + facts["attached"] - 1
    say(f"{name}: {facts['attached']} results attached, as trials {first} to {last}")
