"""``dse run`` and ``dse resume``: run a study until its budget is used up."""

from __future__ import annotations

import shlex
from dataclasses import replace
from typing import Annotated, Any

import typer

from dse.cli import completion as completing
from dse.cli.interrupts import handled_by, leave, stoppable
from dse.cli.options import (
    JsonOrTableOption,
    NameArgument,
    OutputFormat,
    StorageOption,
    StudyFile,
    TrustOption,
    say,
    study_path,
)
from dse.system.credentials import storage_words

STORAGE_AWAY = 75
"""Exit status if the storage stays unreachable: EX_TEMPFAIL of sysexits.h, try again later."""

Measurements = Annotated[
    int | None, typer.Option(min=1, help="Stop after this number of measurements in total.")
]
Trials = Annotated[int | None, typer.Option(min=1, help="Stop after this total number of trials.")]
Time = Annotated[
    str | None, typer.Option(help="Stop after this total time: '20 min'.", show_default=False)
]
Cost = Annotated[
    str | None,
    typer.Option(help="Stop when this amount is spent, at the study's price: '20 $'."),
]
MinImprovement = Annotated[
    str | None,
    typer.Option(
        "--min-improvement",
        help="Stop when the expected gain of hypervolume falls below this share: '0.1 %'.",
    ),
]
Gap = Annotated[
    str | None,
    typer.Option(
        help="Stop when at most this share of the hypervolume can be missing: '1 %'.",
        show_default=False,
    ),
]
Confidence = Annotated[
    str | None,
    typer.Option(help="Confidence of the gap; default: '90 %'.", show_default=False),
]
Patience = Annotated[
    str | None,
    typer.Option(
        "--storage-patience",
        help="How long to wait for an unreachable storage; default: the study's, or '15 min'.",
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
Workers = Annotated[int | None, typer.Option(min=1, help="Number of parallel evaluations.")]
Toward = Annotated[
    str | None,
    typer.Option(
        help="Spend further trials toward the 'favourite' of your answers, or the 'front'.",
        show_default=False,
    ),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress bar and no front.")]


def run(
    study: StudyFile,
    *,
    name: Annotated[str | None, typer.Option(help="Name instead of the file's 'study:'.")] = None,
    storage: StorageOption = None,
    measurements: Measurements = None,
    trials: Trials = None,
    time: Time = None,
    cost: Cost = None,
    min_improvement: MinImprovement = None,
    gap: Gap = None,
    confidence: Confidence = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Seed instead of the file's.")] = None,
    executor: ExecutorOption = None,
    workers: Workers = None,
    storage_patience: Patience = None,
    quiet: Quiet = False,
    output: JsonOrTableOption = OutputFormat.TABLE,
) -> None:
    """Run a study; if it exists already, continue it.

    Example: dse run studies/quickstart.yaml --measurements 40
    """
    from dse.schema.study.overrides import BudgetOverrides, budget_of_words
    from dse.study.study_engine import StudyEngine

    spent: BudgetOverrides = {"time": time, "cost": cost, "min_improvement": min_improvement}
    spent |= {"measurements": measurements, "trials": trials, "gap": gap, "confidence": confidence}
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
    gap: Gap = None,
    confidence: Confidence = None,
    executor: ExecutorOption = None,
    workers: Workers = None,
    storage_patience: Patience = None,
    quiet: Quiet = False,
    trust: TrustOption = False,
    toward: Toward = None,
    output: JsonOrTableOption = OutputFormat.TABLE,
) -> None:
    """Resume a study by its name; its files are not needed.

    An imported study is refused until you trust it, with --trust or `dse studies trust`.

    Example: dse resume quickstart --measurements 80
    """
    from dse.schema.study.overrides import BudgetOverrides, budget_of_words
    from dse.services.studies.steer import steer
    from dse.storage.trust import trust as trust_study
    from dse.study.study_engine import StudyEngine

    spent: BudgetOverrides = {"time": time, "cost": cost, "min_improvement": min_improvement}
    spent |= {"measurements": measurements, "trials": trials, "gap": gap, "confidence": confidence}
    with handled_by(leave):
        opened = StudyEngine.load(name, storage)
        if trust:
            trust_study(opened.storage, name)
        opened.check_runnable()
        budget = budget_of_words(opened.plan, spent)
        if toward is not None:
            steer(opened, toward)
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
    from dse.cli.output.run_progress import RunProgress
    from dse.errors import OutageError
    from dse.schema.study.overrides import stated_executor

    try:
        with stoppable(), RunProgress(study, budget, quiet=quiet) as live:
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
        say("finished trials are kept: in the storage, or in a local file that resuming stores")
        _say_how_to_go_on(study, storage)
        raise typer.Exit(STORAGE_AWAY) from None
    show_outcome(study, reason, output, quiet=quiet, storage=storage)


def _wait(study: Any, stated: str | None) -> None:
    """Set how long the study waits for an unreachable storage, if the option is given.

    Raises:
        DseError: the value of ``--storage-patience`` is not a time.
    """
    from dse.errors import SpecError
    from dse.schema.study.run_sections import patience_of

    if stated is None:
        return
    try:
        study.plan = replace(study.plan, storage_patience_s=patience_of(stated))
    except SpecError as error:
        raise error.at("--storage-patience") from error


def _say_how_to_go_on(study: Any, storage: str | None) -> None:
    where = f" {storage_words(storage)}" if storage else ""
    say(f"go on with: dse resume {shlex.quote(study.name)}{where}")
