"""``dse compare``: compare the fronts of studies, with statistical tests over seeds."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

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

FELL_SHORT = 1


class BudgetAxis(StrEnum):
    """Unit of the budget at which studies are compared: measurements, trials, time or cost."""

    MEASUREMENTS = "measurements"
    TRIALS = "trials"
    SECONDS = "seconds"
    COST = "cost"


class Indicating(StrEnum):
    """Quality indicator by which fronts are compared, such as the hypervolume."""

    HYPERVOLUME = "hypervolume"
    IGD_PLUS = "igd+"
    EPSILON = "epsilon"
    R2 = "r2"


class IgnoredDifference(StrEnum):
    """Aspect in which studies may differ and still be compared."""

    SPACE = "space"
    EVALUATORS = "evaluators"


def compare(
    names: Annotated[
        list[str],
        typer.Argument(
            autocompletion=completing.study_names,
            callback=names_of_files,
            is_eager=True,
            help="Studies, exported files (.jsonl, .parquet), 'study.*' for all matching names, "
            "or 'name=study-*' to group the matching ones under a name.",
            show_default=False,
        ),
    ],
    *,
    storage: StorageOption = None,
    budget_axis: Annotated[
        BudgetAxis | None,
        typer.Option(
            help="Unit of the budget. Default: measurements, or trials if none were made."
        ),
    ] = None,
    budget: Annotated[
        float | None,
        typer.Option(
            min=0.0, help="Compare at this budget. Default: the least that any study spent."
        ),
    ] = None,
    indicator: Annotated[
        list[Indicating] | None,
        typer.Option(help="Quality indicator to test; may be repeated. Default: all."),
    ] = None,
    joint_reference: Annotated[
        bool,
        typer.Option(
            "--joint-reference",
            help="If no study states a reference point, use the worst point of all fronts.",
        ),
    ] = False,
    ignore: Annotated[
        list[IgnoredDifference] | None,
        typer.Option(help="Compare studies although they differ in this; may be repeated."),
    ] = None,
    fail_if_worse: Annotated[
        str | None,
        typer.Option(
            help="Exit with 1 if the hypervolume of another study is more than this share below "
            "the first's, such as '5%'. Groups are compared by their medians, and only if the "
            "difference is significant or there are too few seeds for any to be significant.",
            show_default=False,
        ),
    ] = None,
    file: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write a page (.html) or JSON (.json).")
    ] = None,
    output: JsonOrTableOption = OutputFormat.TABLE,
) -> None:
    """Compare the fronts of studies at an equal budget, with statistical tests over seeds.

    Studies that match a name with '*' and differ only in their seed form one group. Studies whose
    spaces, evaluators, objectives, limits or reference points differ are refused.

    Example: dse compare 'grey=edge.grey-box.*' 'tpe=edge.tpe.*' -o compare.html
    """
    from dse.analysis.comparison import ComparisonOptions
    from dse.analysis.comparison import compare as compared
    from dse.services.studies.selection import gather_groups

    share = None if fail_if_worse is None else _share(fail_if_worse)
    asked = ComparisonOptions(
        over=None if budget_axis is None else budget_axis.value,
        at=budget,
        joint_nadir=joint_reference,
        may_differ=tuple(one.value for one in ignore or ()),
        indicators=_select_indicators(indicator, share),
    )
    groups = gather_groups(names, storage)
    _check_several(groups)
    comparison = compared(groups, asked)
    show(comparison, output, file)
    if share is not None:
        _judge(comparison, share)


def _check_several(groups: Sequence[Any]) -> None:
    """Raise StudyError unless there are at least two studies to compare."""
    runs = [run for group in groups for run in group.runs]
    if len(runs) == 1:
        from dse.errors import StudyError

        hint = "name two or more; dse front shows one study, dse studies list lists all"
        raise StudyError(f"a comparison needs two studies, not {runs[0].name} alone", hint=hint)


def show(comparison: Any, output: OutputFormat, file: Path | None = None) -> None:
    """Print a comparison as a table or JSON, and write it to ``file`` if one is given."""
    from dse.report.html.comparison_page import comparison_text
    from dse.report.json.atomic_file import write_whole
    from dse.report.json.comparison_json import comparison_json
    from dse.report.text.comparison_table import comparison_table

    if file is not None:
        write_whole(file, comparison_text(comparison, file))
        say(f"wrote {file}")
    if output is OutputFormat.JSON:
        show_json(comparison_json(comparison))
    else:
        comparison_table(comparison)


def _judge(comparison: Any, share: float) -> None:
    """Exit with status 1 if a group's hypervolume is too far below the first group's.

    ``share`` is the allowed shortfall, as a fraction of the first group's hypervolume.
    """
    from dse.analysis.comparison import shortfalls

    found = shortfalls(comparison, share)
    for sentence in found:
        say(sentence)
    if found:
        raise typer.Exit(FELL_SHORT)


def _select_indicators(asked: list[Indicating] | None, share: float | None) -> tuple[Any, ...]:
    """Return the names of the quality indicators to test.

    If ``share`` is given, the hypervolume is one of them, because the verdict needs its test.
    """
    needed = () if share is None else ("hypervolume",)
    indicators = [one.value for one in asked or Indicating]
    return tuple(dict.fromkeys((*needed, *indicators)))


def _share(text: str) -> float:
    """Parse a share such as ``5%`` or ``0.05``.

    Raises:
        StudyError: the text is not a number, or not in [0, 1).
    """
    from dse.errors import StudyError

    hint = "--fail-if-worse 5%"
    try:
        words = text.strip()
        bare = float(words.removesuffix("%")) / (100 if words.endswith("%") else 1)
    except ValueError as error:
        raise StudyError(f"{text!r} is not a share", hint=hint) from error
    if not 0 <= bare < 1:
        raise StudyError(f"{text!r} is not from 0 % to below 100 %", hint=hint)
    return bare
