"""``dse verify``: replay a study's record to prove that its designs follow from it."""

from __future__ import annotations

from typing import Annotated

import typer

from dse.cli.options import (
    JsonOrTableOption,
    NameArgument,
    OutputFormat,
    StorageOption,
    show,
    show_json,
)

FELL_SHORT = 1


def verify(
    name: NameArgument,
    *,
    storage: StorageOption = None,
    sample: Annotated[
        int | None,
        typer.Option(min=1, help="Replay this many asks, evenly spread; default: all."),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the sample.")] = 0,
    output: JsonOrTableOption = OutputFormat.TABLE,
) -> None:
    """Prove by replay that the optimizer proposes each design, given the trials it then knew.

    The exit code is 1 if something could not be proved. A sample takes less time and proves only
    part of the record: the number of asks (calls of the optimizer) that it leaves out is printed
    and does not cause code 1.

    Example: dse verify quickstart --sample 20
    """
    from dse.cli.output import proof_output as proved
    from dse.cli.output.bar import replaying
    from dse.study.replay import Replay
    from dse.study.study_engine import StudyEngine

    study = StudyEngine.load(name, storage)
    with replaying(quiet=output is not OutputFormat.TABLE) as on_progress:
        proof = Replay(study, on_progress=on_progress, sample=sample, seed=seed).proof()
    if output is OutputFormat.TABLE:
        show(proved.words(proof))
    else:
        show_json(proved.json(study.name, proof))
    if not proof.sound:
        raise typer.Exit(FELL_SHORT)
