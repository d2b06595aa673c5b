"""``dse compare``: which study has the better front, and after how much."""

from __future__ import annotations

from typing import Annotated

import typer

from dse.cli.options import Format, FormatOption, StorageOption, show_json


def compare(
    names: Annotated[list[str], typer.Argument(help="Two or more studies.", show_default=False)],
    *,
    storage: StorageOption = None,
    joint_reference: Annotated[
        bool,
        typer.Option(
            "--joint-reference", help="Take the worst of all fronts where no study states a point."
        ),
    ] = False,
    output: FormatOption = Format.TABLE,
) -> None:
    """Compare studies of one question: hypervolume over measurements and over seconds.

    Studies of unlike questions, or with unlike reference points, are refused.

    Example: dse compare quickstart quickstart-random
    """
    from dse.analysis.comparison import Run
    from dse.analysis.comparison import compare as compared
    from dse.report import export, table
    from dse.study import Study

    studies = [Study.load(name, storage) for name in names]
    runs = [Run(s.name, s.problem, s.finished) for s in studies]
    comparison = compared(runs, joint_nadir=joint_reference)
    if output is Format.TABLE:
        table.comparison_table(comparison)
    else:
        show_json(export.comparison_json(comparison))
