"""``dse check --reproduce``: studies are run, and the claims that they state judged."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer

from dse.cli.options import Format, say, show_json

FELL_SHORT = 1
INTERRUPTED = 3

_FORGETFUL = "memory://"

_EXACT_END = 2**53
"""Whole numbers below are shown to their last digit."""

_STYLES = {"accepted": "green", "not reproduced": "yellow"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """A claim with the study's number; ``reason`` says why there is none."""

    claim: Any
    ours: float | None
    holds: bool | None
    reason: str = ""

    @property
    def verdict(self) -> str:
        """What is to be said of the claim in one or two words."""
        if self.claim.spec.proof == "not reproduced" and self.ours is not None:
            return "not reproduced"
        if self.ours is None:
            return "no answer"
        return "accepted" if self.holds else "fell short"

    @property
    def passes(self) -> bool:
        """True if the study did what its file says."""
        return self.verdict in _STYLES


def reproduced(paths: Sequence[Path], storage: str | None, output: Format) -> None:
    """Run the studies of these files and judge their claims.

    Args:
        paths: study files.
        storage: where the studies are kept; forgotten without one.
        output: a table for people, or JSON.

    Raises:
        SpecErrors: a file has mistakes; nothing was run.
        StudyError: a study states no claims; nothing was run.
    """
    from dse.errors import StudyError
    from dse.schema.plan import plan_of
    from dse.schema.source import shown

    if output not in (Format.TABLE, Format.JSON):
        raise StudyError("claims are a table or json", hint="--format json")
    for path in paths:
        if not plan_of(path).claims:
            hint = "'reproduces:' lists claims, as docs/reproductions.md tells"
            raise StudyError("the study states no claims", where=shown(path), hint=hint)
    told = []
    for place, path in enumerate(paths):
        try:
            judged = _judged(path, storage, words=f"{place + 1} of {len(paths)}", output=output)
        except KeyboardInterrupt:
            say("interrupted; " + ("the same words go on" if storage else "nothing is kept"))
            raise typer.Exit(INTERRUPTED) from None
        told.append((path, judged))
        if output is Format.TABLE:
            _print(path, judged)
    if output is Format.JSON:
        show_json([_plain(path, judged) for path, judged in told])
    everything = [one for _, judged in told for one in judged]
    _conclude(everything, quiet=output is not Format.TABLE)


def judged_claims(study: Any) -> list[Judged]:
    """Each claim of the study, held against the trials that it has."""
    trials = list(study.trials)
    return [_held(claim, study.problem, trials) for claim in study.plan.claims]


def _judged(path: Path, storage: str | None, *, words: str, output: Format) -> list[Judged]:
    from dse.cli.progress import Progressing
    from dse.errors import DseError
    from dse.schema.plan import plan_of
    from dse.study import Study

    quiet = output is not Format.TABLE
    try:
        study = Study.open(path, storage=storage or _FORGETFUL)
        if not quiet:
            say(f"{words}: {study.name}")
        with Progressing(study, study.plan.budget, quiet=quiet) as live:
            study.run(on_finished=live.finished, on_progress=live.searched)
    except DseError as error:
        claims = plan_of(path).claims
        return [Judged(claim=one, ours=None, holds=None, reason=str(error)) for one in claims]
    return judged_claims(study)


def _held(claim: Any, problem: Any, trials: Sequence[Any]) -> Judged:
    from dse.errors import StudyError

    try:
        ours = claim.ours(problem, trials)
    except StudyError as error:
        return Judged(claim=claim, ours=None, holds=None, reason=str(error))
    return Judged(claim=claim, ours=ours, holds=claim.holds(ours))


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


def _plain(path: Path, judged: Iterable[Judged]) -> dict[str, Any]:
    from dse.schema.source import shown

    return {
        "file": shown(path),
        "claims": [
            {
                **one.claim.spec.model_dump(),
                "formula": one.claim.spec.ours,
                "ours": one.ours,
                "unit": one.claim.unit,
                "holds": one.holds,
                "verdict": one.verdict,
                "reason": one.reason,
            }
            for one in judged
        ],
    }


def _conclude(judged: Sequence[Judged], *, quiet: bool) -> None:
    """Say how many claims hold; exit code 1 if one that is claimed does not."""
    from collections import Counter

    counts = Counter(one.verdict for one in judged)
    if not quiet:
        typer.echo(", ".join(f"{count} {verdict}" for verdict, count in counts.items()))
    if not all(one.passes for one in judged):
        raise typer.Exit(FELL_SHORT)
