"""What a run came to: its reason and front for people, or all of it as JSON."""

from __future__ import annotations

from dse.cli import faults
from dse.cli.options import Told, say, show_json
from dse.records.standing import ended_json
from dse.report.table import front_table
from dse.study import Study


def show_outcome(
    study: Study, reason: str, output: Told, *, quiet: bool, storage: str | None = None
) -> None:
    """Print what a run came to.

    Args:
        study: the study as it stands.
        reason: why the run ended.
        output: a table for people, or JSON.
        quiet: no words and no table; JSON is printed all the same, since it was asked for.
        storage: the URL of where the study is kept; the default one without.
    """
    if not quiet:
        say(f"{study.name}: {reason}")
        for line in faults.lines(study.name, study.finished, storage=storage):
            say(line)
    if output is Told.JSON:
        show_json(ended_json(study, reason))
    elif not quiet:
        front_table(study.front, study.finished, exact=study.exact)
