"""``dse learn``: fit regressions to runs, and keep them as a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dse.cli.options import (
    JsonOrTableOption,
    OutputFormat,
    StorageOption,
    say,
    show,
    show_json,
)

if TYPE_CHECKING:
    from dse.protocols import LearnedMetric, LearningResult
    from dse.report.schemas.pages import LearnedFile


def learn(
    runs: Annotated[
        str,
        typer.Argument(
            help="Table, exported study, folder of such files, or name of a stored study."
        ),
    ],
    *,
    metrics: Annotated[
        str,
        typer.Option(help="Metrics with units, as latency=ms,error.", show_default=False),
    ],
    target: Annotated[
        Path | None, typer.Option("--output", "-o", help="File to write: .dse.")
    ] = None,
    reads: Annotated[
        str | None, typer.Option(help="Inputs, as threads,block; default: all other columns.")
    ] = None,
    units: Annotated[str | None, typer.Option(help="Units of inputs, as size=MiB.")] = None,
    group: Annotated[
        str | None, typer.Option(help="Column of runs that belong together, held out as a whole.")
    ] = None,
    monotone: Annotated[
        str | None, typer.Option(help="Directions of metrics in inputs, as threads=falling.")
    ] = None,
    storage: StorageOption = None,
    output: JsonOrTableOption = OutputFormat.TABLE,
) -> None:
    """Fit a regression to runs, and print its error on runs that were held out.

    With -o the runs and options are kept in a file, for `{use: learned, file: latency.dse}` in any
    study. The file holds data and no code; each study that uses it fits the same regression anew.

    Example: dse learn runs.csv --metrics latency=ms -o latency.dse
    """
    from dse.services.studies.learn_model import learn as learn_runs

    options = {
        "reads": None if reads is None else [one.strip() for one in reads.split(",")],
        "units": _pairs(units),
        "group": group,
        "monotone": _pairs(monotone),
    }
    found = learn_runs(
        runs,
        target,
        metrics=_pairs(metrics) or {},
        options={name: value for name, value in options.items() if value is not None},
        storage=storage,
    )
    if output is OutputFormat.JSON:
        show_json(_facts(found, target))
        return
    _print_tables(found)
    for text in found.notes:
        say(f"note: {text}")
    if target is not None:
        say(f"wrote {target}: {{use: learned, file: {target}}}")


def _pairs(text: str | None) -> dict[str, str] | None:
    """Parse ``a=x,b=y`` into values by name; a name without ``=`` has an empty value."""
    if text is None:
        return None
    parts = [one.partition("=") for one in text.split(",")]
    return {name.strip(): value.strip() for name, _, value in parts}


def _facts(found: LearningResult, target: Path | None) -> LearnedFile:
    return {
        "file": None if target is None else str(target),
        "metrics": [
            {
                "metric": one.metric,
                "unit": one.unit,
                "model": one.model,
                "runs": one.runs,
                "held_out": one.held_out,
                "mean": one.mape,
                "largest": one.largest,
                "spearman": one.spearman,
                "coverage": one.coverage,
                "group": one.grouped_by or None,
                "importances": [
                    {"input": each.name, "rise": each.rise, "stderr": each.stderr}
                    for each in one.importances
                ],
            }
            for one in found.metrics
        ],
        "notes": list(found.notes),
    }


def _print_tables(found: LearningResult) -> None:
    show(f"{'on held-out runs':<42} runs  mean error  largest  rank corr.  in 90 % band")
    for one in found.metrics:
        title = f"{_title(one)}: {one.model}"
        shares = f"{one.mape:10.1%} {one.largest:8.0%} {one.spearman:11.3f} {one.coverage:13.0%}"
        show(f"{title:<41} {one.held_out:>5}  {shares}")
    for one in found.metrics:
        show()
        title = f"{_title(one)}: input permuted"
        show(f"{title:<41} mean error rises by")
        for each in one.importances:
            show(f"  {each.name:<39} {each.rise * 100:+9.1f} points +- {each.stderr * 100:.1f}")


def _title(one: LearnedMetric) -> str:
    return f"{one.metric} [{one.unit}]" if one.unit else one.metric
