"""``dse doctor``: whether the installation is sound, and how to mend it."""

from __future__ import annotations

from collections.abc import Sequence

import typer

from dse.checkup.finding import Finding, Verdict
from dse.cli.options import StorageOption, show_json
from dse.cli.space_options import Told, ToldOption

UNSOUND = 1


def doctor(*, storage: StorageOption = None, output: ToldOption = Told.TABLE) -> None:
    """Check packages, plug-ins, threads, memory, storage, GPU, and say how to mend what is not.

    Ends with 1 if anything is broken; what is merely absent is needed by some studies alone.

    Example: dse doctor --storage postgresql+psycopg://me@host/dse
    """
    from dse.checkup.machine import machine_findings
    from dse.checkup.packages import package_findings
    from dse.checkup.storages import storage_findings

    found = [*package_findings(), *machine_findings(), *storage_findings(storage)]
    if output is Told.JSON:
        show_json(
            [
                {"part": f.part, "verdict": f.verdict.value, "told": f.told, "mend": f.mend}
                for f in found
            ]
        )
    else:
        _print(found)
    if any(one.verdict is Verdict.BROKEN for one in found):
        raise typer.Exit(UNSOUND)


def _print(found: Sequence[Finding]) -> None:
    wide = max(len(one.part) for one in found)
    for one in found:
        typer.echo(f"{one.verdict.value:<6}  {one.part:<{wide}}  {one.told}")
        if one.mend:
            typer.echo(f"{'':<6}  {'':<{wide}}  mend: {one.mend}")
