"""``dse sweep``: one study by several optimizers over seeds, so that they can be compared."""

from __future__ import annotations

import shlex
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from dse.cli.options import Format, FormatOption, StorageOption, StudyFile, say, study_path
from dse.cli.run import (
    Cost,
    ExecutorOption,
    Measurements,
    Time,
    Trials,
    Workers,
    stated_budget,
    stated_executor,
)

INTERRUPTED = 3
SWEPT = "swept"
"""The kind of the event that tells with which bounds a study of a sweep has ended."""


def sweep(
    study: StudyFile,
    *,
    optimizer: Annotated[
        list[str] | None,
        typer.Option(help="An optimizer's name; may be repeated. The study's own without it."),
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, help="Seeds for each, from the study's on.")] = 5,
    name: Annotated[str | None, typer.Option(help="Instead of the file's 'study:'.")] = None,
    storage: StorageOption = None,
    measurements: Measurements = None,
    trials: Trials = None,
    time: Time = None,
    cost: Cost = None,
    executor: ExecutorOption = None,
    workers: Workers = None,
    file: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write the comparison: .html or .json.")
    ] = None,
    output: FormatOption = Format.TABLE,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress bar.")] = False,
) -> None:
    """Run a study by every optimizer with every seed, and compare the optimizers.

    The studies are called NAME.OPTIMIZER.SEED. Those that have ended are not run again, and one
    that was cut is gone on with: a sweep is gone on with by the same words.

    Example: dse sweep studies/quickstart.yaml --optimizer auto --optimizer nsga2 --seeds 10
    """
    from dse.cli.compare import show
    from dse.cli.sweeping import Bar, Sweep

    told = {"time": time, "cost": cost, "measurements": measurements, "trials": trials}
    whole = Sweep.of(study_path(study), optimizer or [], seeds, name=name, storage=storage)
    try:
        with Bar(len(whole.members), quiet=quiet) as bar:
            for member in whole.members:
                _go(member.open(), bar, told, executor, workers)
    except KeyboardInterrupt:
        say("interrupted; what was finished is kept")
        say(f"go on with: {shlex.join(_words())}")
        raise typer.Exit(INTERRUPTED) from None
    show(whole.comparison(), output, file)


def _go(
    study: Any,
    bar: Any,
    told: dict[str, Any],
    executor: str | None,
    workers: int | None,
) -> None:
    """One study to its end, unless it has ended with these very bounds before."""
    from dse.core.trial import Event

    budget = stated_budget(study, told)
    bounds = study.bounds(budget)
    words = ", ".join(f"{key} {value}" for key, value in asdict(bounds).items() if value)
    ended = f"bounds: {words or 'none'}"
    events = study.events
    if not any(event.kind == SWEPT and event.text == ended for event in events):
        bar.begins(study, bounds)
        study.run(
            budget=budget,
            executor=stated_executor(study, executor, workers),
            on_finished=bar.finished,
        )
        study.storage.record(study.name, [Event(kind=SWEPT, text=ended)])
    bar.ended()


def _words() -> list[str]:
    import sys

    return ["dse", *sys.argv[1:]]
