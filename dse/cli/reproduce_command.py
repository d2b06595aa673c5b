"""``dse check --reproduce``: run studies and check the published results that they state."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import typer

from dse.cli.interrupts import stoppable
from dse.cli.options import OutputFormat, say, show, show_json
from dse.cli.output.run_progress import RunProgress
from dse.errors import DseError
from dse.report.schemas.reproduction import JudgedClaim, JudgedStudy
from dse.report.text.claim_verdicts import (
    FINDING,
    IDENTITY,
    count_claims,
    ours_text,
    print_text,
    summary_line,
    turned_text,
    verdict_text,
)
from dse.services.studies.assumption_sensitivity import turn_assumptions
from dse.services.studies.claim_evaluation import (
    ClaimVerdict,
    build_open_claims,
    claiming,
    claims_json,
    judged_claims,
)
from dse.study.study_engine import StudyEngine

FELL_SHORT = 1
INTERRUPTED = 3

_FORGETFUL = "memory://"

_STYLES = {"accepted": "green", "not reproduced": "yellow", "size differs": "yellow"}

_PARTS = {
    FINDING: "findings of this study, without a published figure",
    IDENTITY: "identities, which cannot fail and reproduce nothing",
}


def reproduce_claims(
    paths: Sequence[Path], storage: str | None, output: OutputFormat, *, assumptions: bool = False
) -> None:
    """Run the studies of these files, and compare their results with their stated claims.

    Args:
        paths: study files.
        storage: the URL of a storage that keeps the studies; without it they are discarded.
        output: a table for people, or JSON.
        assumptions: also run the studies with each assumption at both ends of its interval.

    Raises:
        SpecErrors: a file has mistakes; nothing was run.
        StudyError: a study states no claims; nothing was run.
    """
    plans = [claiming(path) for path in paths]
    results: list[JudgedStudy] = []
    for place, (path, plan) in enumerate(zip(paths, plans, strict=True)):
        runner = _Runner(storage, words=f"{place + 1} of {len(paths)}", output=output)
        try:
            with stoppable():
                judged = runner.judged(path, assumptions=assumptions)
        except KeyboardInterrupt:
            say("interrupted; " + ("the same command continues" if storage else "nothing is kept"))
            raise typer.Exit(INTERRUPTED) from None
        results.append(claims_json(path, judged, plan))
        if output is OutputFormat.TABLE:
            _print(results[-1])
    if output is OutputFormat.JSON:
        show_json(results)
    _conclude(
        [one for study in results for one in study["claims"]],
        quiet=output is not OutputFormat.TABLE,
    )


class _Runner:
    """Runner of a study that states claims.

    On request it also runs the variants of the study in which an assumption is at an end of its
    range.
    """

    def __init__(self, storage: str | None, *, words: str, output: OutputFormat) -> None:
        self._storage = storage or _FORGETFUL
        self._words = words
        self._quiet = output is not OutputFormat.TABLE

    def judged(self, path: Path, *, assumptions: bool) -> list[ClaimVerdict]:
        try:
            study = StudyEngine.open(path, storage=self._storage)
            self._run(study)
        except DseError as error:
            return build_open_claims(claiming(path), str(error))
        judged = judged_claims(study)
        if not assumptions:
            return judged
        return turn_assumptions(study, judged, self._run, storage=self._storage)

    def _run(self, study: StudyEngine) -> None:
        if not self._quiet:
            say(f"{self._words}: {study.name}")
        with RunProgress(study, study.plan.budget, quiet=self._quiet) as live:
            study.run(on_finished=live.finished, on_progress=live.searched)


def _print(study: JudgedStudy) -> None:
    claims = study["claims"]
    _print_table(study["file"], [one for one in claims if one["proof"] not in _PARTS])
    for proof, title in _PARTS.items():
        _print_table(title, [one for one in claims if one["proof"] == proof])
    for one in claims:
        for words in filter(None, (_beyond(one), one["reason"], turned_text(one))):
            say(f"{one['claim']}: {words}")


def _beyond(one: JudgedClaim) -> str:
    """Return the full verdict if the table shows only a short form of it, else ``""``."""
    words = verdict_text(one)
    return words if words != one["verdict"] else ""


def _print_table(title: str, claims: Sequence[JudgedClaim]) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.markup import escape
    from rich.table import Table

    from dse.report.text.console import SafeConsole

    if not claims:
        return
    table = Table(box=SIMPLE_HEAD, header_style="bold", pad_edge=False, title=escape(title))
    for heading in ("claim", "published", "ours", "proof", "verdict"):
        whole = heading not in ("claim", "published")
        table.add_column(heading, no_wrap=whole, overflow="fold")
    for one in claims:
        cells = [one["claim"], print_text(one), ours_text(one), one["proof"]]
        style = _STYLES.get(one["verdict"], "red")
        table.add_row(*map(escape, cells), f"[{style}]{one['verdict']}[/]")
    SafeConsole().print(table)


def _conclude(claims: Sequence[JudgedClaim], *, quiet: bool) -> None:
    """Print the number of claims by outcome; exit with 1 if one differs from its label.

    The label is the kind of proof that the study file states for the claim, such as ``not
    reproduced``.
    """
    if not quiet:
        show(summary_line(count_claims(claims)))
    if any(one["counts_as"] == "failed" for one in claims):
        raise typer.Exit(FELL_SHORT)
