"""``dse report``: a study as one HTML file that opens anywhere."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dse.cli.options import StorageOption, say


def report(
    names: Annotated[
        list[str],
        typer.Argument(
            help="The study's name; several, as `dse compare` takes them, for a comparison.",
            show_default=False,
        ),
    ],
    *,
    file: Annotated[
        Path | None, typer.Option("--output", "-o", help="The file; NAME.html without.")
    ] = None,
    storage: StorageOption = None,
) -> None:
    """Write a report: the best designs and why they win, figures, the table.

    Example: dse report quickstart -o report.html
    """
    several = len(names) > 1
    text = _comparison(names, storage) if several else _study(names[0], storage)
    path = file or Path(f"{'comparison' if several else names[0]}.html")
    write_whole(path, text)
    say(f"wrote {path}")


def _comparison(names: list[str], storage: str | None) -> str:
    from dse.analysis.comparison import Asked, compare
    from dse.cli.gather import gathered
    from dse.report.comparison_page import comparison_html

    return comparison_html(compare(gathered(names, storage), Asked()))


def _study(name: str, storage: str | None) -> str:
    from dse.analysis.effects import asked_effects
    from dse.analysis.importance import importances
    from dse.analysis.runner_up import duels
    from dse.report.html import Beside, report_html
    from dse.study import Study

    study = Study.load(name, storage)
    factorial = study.plan.optimizer.use == "factorial"
    front, finished = study.front, study.finished
    return report_html(
        study.name,
        study.plan.question,
        front,
        finished,
        study.events,
        study.provenance,
        Beside(
            contrast=study.contrast,
            effects=asked_effects(study.problem, finished) if factorial else [],
            duels=duels(front, finished),
            importances=importances(study.problem, finished),
        ),
    )


def write_whole(path: Path, text: str | bytes) -> None:
    """Write the file, whole or not at all.

    Raises:
        StorageError: it cannot be written.
    """
    from dse.errors import StorageError

    if not path.name or path.is_dir():
        raise StorageError(f"{path} is a folder", hint="name a file in it")
    part = path.with_name(f".{path.name}.part")
    try:
        part.write_bytes(text.encode() if isinstance(text, str) else text)
        part.replace(path)
    except OSError as error:
        raise StorageError(f"{path} cannot be written: {error.strerror}") from error
