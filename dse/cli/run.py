"""``dse run`` and ``dse resume``: a study goes on until its budget is used up."""

from __future__ import annotations

import shlex
from dataclasses import replace
from typing import Annotated, Any

import typer

from dse.cli import completion as completing
from dse.cli.interrupts import handled_by, leave, stoppable
from dse.cli.options import (
    NameArgument,
    OutputFormat,
    StorageOption,
    StudyFile,
    ToldOption,
    TrustOption,
    say,
    study_path,
)
from dse.system.credentials import storage_words

STORAGE_AWAY = 75
"""The exit status of a run whose storage stayed away: EX_TEMPFAIL of sysexits.h, try again."""

Measurements = Annotated[
    int | None, typer.Option(min=1, help="Stop after so many measurements in all.")
]
Trials = Annotated[int | None, typer.Option(min=1, help="Stop after so many trials in all.")]
Time = Annotated[
    str | None, typer.Option(help="Stop after so long in all: '20 min'.", show_default=False)
]
Cost = Annotated[
    str | None,
    typer.Option(help="Stop when so much is spent, at the study's price: '20 $'."),
]
MinImprovement = Annotated[
    str | None,
    typer.Option(
        "--min-improvement",
        help="Stop when the expected gain of hypervolume falls below this share: '0.1 %'.",
    ),
]
Patience = Annotated[
    str | None,
    typer.Option(
        "--storage-patience",
        help="How long to wait for a storage that is away: '15 min' if the study says nothing.",
        show_default=False,
    ),
]
ExecutorOption = Annotated[
    str | None,
    typer.Option(
        "--executor",
        autocompletion=completing.executors,
        help="Where evaluations run: serial, processes, ...",
    ),
]
Workers = Annotated[int | None, typer.Option(min=1, help="How many evaluations at once.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress bar and no front.")]


def run(
    study: StudyFile,
    *,
    name: Annotated[str | None, typer.Option(help="Instead of the file's 'study:'.")] = None,
    storage: StorageOption = None,
    measurements: Measurements = None,
    trials: Trials = None,
    time: Time = None,
    cost: Cost = None,
    min_improvement: MinImprovement = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Instead of the file's seed.")] = None,
    executor: ExecutorOption = None,
    workers: Workers = None,
    storage_patience: Patience = None,
    quiet: Quiet = False,
    output: ToldOption = OutputFormat.TABLE,
) -> None:
    """Run a study; one that exists is gone on with.

    Example: dse run studies/quickstart.yaml --measurements 40
    """
    from dse.schema.study.overrides import BudgetOverrides, budget_of_words
    from dse.study.study import StudyEngine

    spent: BudgetOverrides = {"time": time, "cost": cost, "min_improvement": min_improvement}
    spent |= {"measurements": measurements, "trials": trials}
    with handled_by(leave):
        opened = StudyEngine.open(study_path(study), name=name, storage=storage, seed=seed)
        budget = budget_of_words(opened.plan, spent)
    storage = storage or opened.plan.storage
    _wait(opened, storage_patience)
    _go(opened, budget, executor, workers, quiet=quiet, storage=storage, output=output)


def resume(
    name: NameArgument,
    *,
    storage: StorageOption = None,
    measurements: Measurements = None,
    trials: Trials = None,
    time: Time = None,
    cost: Cost = None,
    min_improvement: MinImprovement = None,
    executor: ExecutorOption = None,
    workers: Workers = None,
    storage_patience: Patience = None,
    quiet: Quiet = False,
    trust: TrustOption = False,
    output: ToldOption = OutputFormat.TABLE,
) -> None:
    """Go on with a study by its name; its files are not needed.

    An imported one is refused until you trust it: --trust, or `dse studies trust`.

    Example: dse resume quickstart --measurements 80
    """
    from dse.schema.study.overrides import BudgetOverrides, budget_of_words
    from dse.storage.trust import trust as trust_study
    from dse.study.study import StudyEngine

    spent: BudgetOverrides = {"time": time, "cost": cost, "min_improvement": min_improvement}
    spent |= {"measurements": measurements, "trials": trials}
    with handled_by(leave):
        opened = StudyEngine.load(name, storage)
        if trust:
            trust_study(opened.storage, name)
        opened.check_runnable()
        budget = budget_of_words(opened.plan, spent)
    for warning in opened.plan.warnings:
        say(f"warning: {warning}")
    _wait(opened, storage_patience)
    _go(opened, budget, executor, workers, quiet=quiet, storage=storage, output=output)


def _go(
    study: Any,
    budget: Any,
    executor: str | None,
    workers: int | None,
    *,
    quiet: bool,
    storage: str | None,
    output: OutputFormat,
) -> None:
    from dse.cli.output.outcome import show_outcome
    from dse.cli.output.progress import Progressing
    from dse.errors import OutageError
    from dse.schema.study.overrides import stated_executor

    try:
        with stoppable(), Progressing(study, budget, quiet=quiet) as live:
            reason = study.run(
                budget=budget,
                executor=stated_executor(study.plan, executor, workers),
                on_finished=live.finished,
                on_choice=live.say,
                on_progress=live.searched,
                on_notice=live.notice,
            )
    except KeyboardInterrupt:
        say("interrupted; what was finished is kept")
        _say_how_to_go_on(study, storage)
        raise typer.Exit(3) from None
    except OutageError as error:
        say(f"error: {error}")
        say("what was finished is kept: in the storage, or in a file here that resuming stores")
        _say_how_to_go_on(study, storage)
        raise typer.Exit(STORAGE_AWAY) from None
    show_outcome(study, reason, output, quiet=quiet, storage=storage)


def _wait(study: Any, stated: str | None) -> None:
    """Make the study wait for an absent storage for as long as the command states.

    Raises:
        DseError: it is no time, at ``--storage-patience``.
    """
    from dse.errors import SpecError
    from dse.schema.study.retries import patience_of

    if stated is None:
        return
    try:
        study.plan = replace(study.plan, storage_patience_s=patience_of(stated))
    except SpecError as error:
        raise error.at("--storage-patience") from error


def _say_how_to_go_on(study: Any, storage: str | None) -> None:
    where = f" {storage_words(storage)}" if storage else ""
    say(f"go on with: dse resume {shlex.quote(study.name)}{where}")
