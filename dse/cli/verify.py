"""``dse verify``: the record is replayed, and proved or not."""

from __future__ import annotations

from typing import Annotated

import typer

from dse.cli.options import NameArgument, OutputFormat, StorageOption, ToldOption, show, show_json

FELL_SHORT = 1


def verify(
    name: NameArgument,
    *,
    storage: StorageOption = None,
    sample: Annotated[
        int | None,
        typer.Option(min=1, help="Replay so many asks, spread evenly; without, all of them."),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of the sample.")] = 0,
    output: ToldOption = OutputFormat.TABLE,
) -> None:
    """Prove that each design of a study is what its optimizer asks, given what was known then.

    Exit code 1 says that something could not be proved. A sample takes a share of the time and
    proves a share of the record: what it leaves out is printed, and no cause for code 1.

    Example: dse verify quickstart --sample 20
    """
    from dse.cli.output import proof as proved
    from dse.cli.output.bar import replaying
    from dse.study.replay import Replay
    from dse.study.study import StudyEngine

    study = StudyEngine.load(name, storage)
    with replaying(quiet=output is not OutputFormat.TABLE) as on_progress:
        proof = Replay(study, on_progress=on_progress, sample=sample, seed=seed).proof()
    if output is OutputFormat.TABLE:
        show(proved.words(proof))
    else:
        show_json(proved.json(study.name, proof))
    if not proof.sound:
        raise typer.Exit(FELL_SHORT)
