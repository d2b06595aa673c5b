"""``dse verify``: the record is replayed, and proved or not."""

from __future__ import annotations

import typer

from dse.cli.options import NameArgument, StorageOption, Told, ToldOption, show, show_json

FELL_SHORT = 1


def verify(
    name: NameArgument,
    *,
    storage: StorageOption = None,
    output: ToldOption = Told.TABLE,
) -> None:
    """Prove that each design of a study is what its optimizer asks, told what was known then.

    Exit code 1 says that something could not be proved.

    Example: dse verify quickstart
    """
    from dse.cli import proved
    from dse.cli.bar import replaying
    from dse.study import Study
    from dse.verify import Replay

    study = Study.load(name, storage)
    with replaying(quiet=output is not Told.TABLE) as on_progress:
        proof = Replay(study, on_progress=on_progress).proof()
    if output is Told.TABLE:
        show(proved.words(proof))
    else:
        show_json(proved.json(study.name, proof))
    if not proof.whole:
        raise typer.Exit(FELL_SHORT)
