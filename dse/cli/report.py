"""``dse report``: a study, or a comparison of several, as one self-contained HTML file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dse.cli import completion as completing
from dse.cli.options import (
    JsonOrTableOption,
    OutputFormat,
    StorageOption,
    names_of_files,
    say,
    show_json,
)
from dse.report.schemas.pages import WrittenReport


def report(
    names: Annotated[
        list[str],
        typer.Argument(
            autocompletion=completing.study_names,
            callback=names_of_files,
            is_eager=True,
            help="The study's name; for a comparison, several names as for `dse compare`.",
            show_default=False,
        ),
    ],
    *,
    file: Annotated[
        Path | None, typer.Option("--output", "-o", help="File to write; default: NAME.html.")
    ] = None,
    storage: StorageOption = None,
    joint_reference: Annotated[
        bool,
        typer.Option(
            "--joint-reference",
            help="With several studies, of which none states a reference point: use the worst "
            "point of all fronts.",
        ),
    ] = False,
    output: JsonOrTableOption = OutputFormat.TABLE,
) -> None:
    """Write an HTML report: the best designs and why they win, figures and a table.

    Example: dse report quickstart -o report.html
    """
    from dse.report.json.atomic_file import write_whole

    several = len(names) > 1 or "*" in names[0]
    text = (
        _comparison(names, storage, joint=joint_reference) if several else _study(names[0], storage)
    )
    path = file or Path(f"{'comparison' if several else names[0]}.html")
    _check_page(path)
    write_whole(path, text)
    if output is OutputFormat.JSON:
        written: WrittenReport = {
            "file": str(path),
            "studies": list(names),
            "size_bytes": path.stat().st_size,
        }
        show_json(written)
    else:
        say(f"wrote {path}")


def _check_page(path: Path) -> None:
    """Raise StudyError unless the file has an extension of an HTML page, or no extension.

    A file without an extension is accepted.
    """
    if path.suffix and path.suffix.lower() not in (".html", ".htm", ".xhtml"):
        from dse.errors import StudyError

        hint = f"write -o {path.with_suffix('.html')}; a browser prints it as PDF"
        raise StudyError(f"a report is an HTML page; {path} has another extension", hint=hint)


def _comparison(names: list[str], storage: str | None, *, joint: bool) -> str:
    from dse.analysis.comparison import ComparisonOptions, compare
    from dse.report.html.comparison_page import comparison_html
    from dse.services.studies.selection import gather_groups

    return comparison_html(
        compare(gather_groups(names, storage), ComparisonOptions(joint_nadir=joint))
    )


def _study(name: str, storage: str | None) -> str:
    from dse.services.studies.html_report import report_text
    from dse.study.study_engine import StudyEngine

    return report_text(StudyEngine.load(name, storage))
