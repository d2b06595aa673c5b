"""``dse doctor``: check the installation and print how to fix problems."""

from __future__ import annotations

from collections.abc import Sequence

import typer

from dse.cli.options import JsonOrTableOption, OutputFormat, StorageOption, show, show_json
from dse.report.schemas.pages import FindingFacts
from dse.services.doctor.finding import Finding, Verdict

UNSOUND = 1


def doctor(
    *, storage: StorageOption = None, output: JsonOrTableOption = OutputFormat.TABLE
) -> None:
    """Check packages, plug-ins, threads, memory, storage and GPU; print how to fix problems.

    Every row of every study in the storage is verified against its checksum. The exit code is 1 if
    anything is broken; parts that are merely absent are needed only by some studies.

    Example: dse doctor --storage postgresql+psycopg://me@host/dse
    """
    from dse.cli.output.bar import progress_bar
    from dse.services.doctor.installation_checks import findings

    with progress_bar("checking rows", quiet=output is OutputFormat.JSON) as on_progress:
        found = findings(storage, on_progress=on_progress)
    if output is OutputFormat.JSON:
        show_json([_facts(one) for one in found])
    else:
        _print(found)
    if any(one.verdict is Verdict.BROKEN for one in found):
        raise typer.Exit(UNSOUND)


def _facts(one: Finding) -> FindingFacts:
    return {
        "part": one.part,
        "verdict": one.verdict.value,
        "told": one.message,
        "mend": one.mend,
        "study": one.study,
    }


def _print(found: Sequence[Finding]) -> None:
    wide = max(len(one.part) for one in found)
    for one in found:
        show(f"{one.verdict.value:<6}  {one.part:<{wide}}  {one.message}")
        if one.mend:
            show(f"{'':<6}  {'':<{wide}}  fix: {one.mend}")
