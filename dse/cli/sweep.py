"""``dse sweep``: run a study with several optimizers and seeds, and compare the optimizers."""

from __future__ import annotations

import shlex
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from dse.cli import completion as completing
from dse.cli.interrupts import stoppable
from dse.cli.options import (
    JsonOrTableOption,
    OutputFormat,
    StorageOption,
    StudyFile,
    say,
    study_path,
)
from dse.cli.run import (
    Cost,
    ExecutorOption,
    Measurements,
    Time,
    Trials,
    Workers,
)

INTERRUPTED = 3


def sweep(
    study: StudyFile,
    *,
    optimizer: Annotated[
        list[str] | None,
        typer.Option(
            autocompletion=completing.optimizers,
            help="An optimizer's name; may be repeated. Default: the study's own.",
        ),
    ] = None,
    seeds: Annotated[
        int, typer.Option(min=1, help="Number of seeds per optimizer, starting at the study's.")
    ] = 5,
    name: Annotated[str | None, typer.Option(help="Name instead of the file's 'study:'.")] = None,
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
    output: JsonOrTableOption = OutputFormat.TABLE,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress bar.")] = False,
) -> None:
    """Run a study with each optimizer and each seed, and compare the optimizers.

    The studies are called NAME.OPTIMIZER.SEED. Studies that have ended are not run again, and an
    interrupted study is resumed: repeat the command to continue a sweep.

    Example: dse sweep studies/quickstart.yaml --optimizer auto --optimizer nsga2 --seeds 10
    """
    from dse.cli.compare import show
    from dse.cli.output.sweep_progress import SweepProgress
    from dse.schema.study.overrides import BudgetOverrides
    from dse.schema.study.plan import plan_of
    from dse.services.studies.sweep_runs import Sweep

    overrides: BudgetOverrides = {
        "time": time,
        "cost": cost,
        "measurements": measurements,
        "trials": trials,
    }
    path = study_path(study)
    asked = partial(plan_of, path.resolve())
    whole = Sweep.of(asked, optimizer or [], seeds, where=str(path), name=name, storage=storage)
    try:
        with stoppable(), SweepProgress(len(whole.members), quiet=quiet) as live:
            whole.run(live, overrides, executor, workers)
    except KeyboardInterrupt:
        say("interrupted; what was finished is kept")
        say(f"go on with: {shlex.join(_words())}")
        raise typer.Exit(INTERRUPTED) from None
    show(whole.comparison(), output, file)


def _words() -> list[str]:
    import sys

    return ["dse", *sys.argv[1:]]
