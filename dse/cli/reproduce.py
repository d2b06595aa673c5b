"""``dse check --reproduce``: studies are run, and the claims that they state judged."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import typer

from dse.cli.options import Told, say, show_json
from dse.cli.progress import Progressing
from dse.errors import DseError
from dse.records.claims import Judged, claiming, claims_json, judged_claims, unanswered
from dse.study import Study

FELL_SHORT = 1
INTERRUPTED = 3

_FORGETFUL = "memory://"

_EXACT_END = 2**53
"""Whole numbers below are shown to their last digit."""

_STYLES = {"accepted": "green", "not reproduced": "yellow"}


def reproduced(paths: Sequence[Path], storage: str | None, output: Told) -> None:
    """Run the studies of these files and judge their claims.

    Args:
        paths: study files.
        storage: where the studies are kept; forgotten without one.
        output: a table for people, or JSON.

    Raises:
        SpecErrors: a file has mistakes; nothing was run.
        StudyError: a study states no claims; nothing was run.
    """
    for path in paths:
        claiming(path)
    told = []
    for place, path in enumerate(paths):
        try:
            judged = _judged(path, storage, words=f"{place + 1} of {len(paths)}", output=output)
        except KeyboardInterrupt:
            say("interrupted; " + ("the same words go on" if storage else "nothing is kept"))
            raise typer.Exit(INTERRUPTED) from None
        told.append((path, judged))
        if output is Told.TABLE:
            _print(path, judged)
    if output is Told.JSON:
        show_json([claims_json(path, judged) for path, judged in told])
    everything = [one for _, judged in told for one in judged]
    _conclude(everything, quiet=output is not Told.TABLE)


def _judged(path: Path, storage: str | None, *, words: str, output: Told) -> list[Judged]:
    quiet = output is not Told.TABLE
    try:
        study = Study.open(path, storage=storage or _FORGETFUL)
        if not quiet:
            say(f"{words}: {study.name}")
        with Progressing(study, study.plan.budget, quiet=quiet) as live:
            study.run(on_finished=live.finished, on_progress=live.searched)
    except DseError as error:
        return unanswered(claiming(path), str(error))
    return judged_claims(study)


def _print(path: Path, judged: Iterable[Judged]) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    from dse.schema.source import shown

    table = Table(box=SIMPLE_HEAD, header_style="bold", pad_edge=False, title=escape(shown(path)))
    for heading in ("claim", "published", "ours", "proof", "verdict"):
        whole = heading not in ("claim", "published")
        table.add_column(heading, no_wrap=whole, overflow="fold")
    for one in judged:
        spec = one.claim.spec
        cells = [spec.claim, str(spec.published), _ours(one), spec.proof]
        style = _STYLES.get(one.verdict, "red")
        table.add_row(*map(escape, cells), f"[{style}]{one.verdict}[/]")
    Console().print(table)
    for one in judged:
        if one.reason:
            say(f"{one.claim.spec.claim}: {one.reason}")


def _ours(one: Judged) -> str:
    from dse.units import shown

    if one.ours is None:
        return "-"
    whole = not one.claim.unit and one.ours.is_integer() and abs(one.ours) < _EXACT_END
    return f"{one.ours:.0f}" if whole else shown(one.ours, one.claim.unit)


def _conclude(judged: Sequence[Judged], *, quiet: bool) -> None:
    """Say how many claims hold; exit code 1 if one that is claimed does not."""
    from collections import Counter

    counts = Counter(one.verdict for one in judged)
    if not quiet:
        typer.echo(", ".join(f"{count} {verdict}" for verdict, count in counts.items()))
    if not all(one.passes for one in judged):
        raise typer.Exit(FELL_SHORT)
