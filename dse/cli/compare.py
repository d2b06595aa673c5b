"""``dse compare``: which study has the better front, and whether that can be more than chance."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from dse.cli import completion as completing
from dse.cli.options import OutputFormat, StorageOption, ToldOption, say, show_json

FELL_SHORT = 1


class BudgetAxis(StrEnum):
    """Currency in which the spending of studies is counted."""

    MEASUREMENTS = "measurements"
    TRIALS = "trials"
    SECONDS = "seconds"
    COST = "cost"


class Indicating(StrEnum):
    """Quality indicator of a front."""

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
            help="Studies, exported files (.jsonl, .parquet), 'study.*' for all whose names fit, "
            "or 'name=study-*' for a group of these.",
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
        typer.Option(help="Make claims about this alone; may be repeated. All without it."),
    ] = None,
    joint_reference: Annotated[
        bool,
        typer.Option(
            "--joint-reference", help="Take the worst of all fronts where no study states a point."
        ),
    ] = False,
    ignore: Annotated[
        list[IgnoredDifference] | None,
        typer.Option(help="Compare studies although they differ in this; may be repeated."),
    ] = None,
    fail_if_worse: Annotated[
        str | None,
        typer.Option(
            help="Exit with 1 if the hypervolume of any other is more than this share below the "
            "first's, such as '5%'; of groups the median, and only if a difference can be claimed "
            "or there are too few seeds to ever claim one.",
            show_default=False,
        ),
    ] = None,
    file: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write a page (.html) or JSON (.json).")
    ] = None,
    output: ToldOption = OutputFormat.TABLE,
) -> None:
    """Compare studies of one question: fronts at one budget, with tests over groups of seeds.

    Of names with '*', those that differ in their seed alone are one group. Studies of unlike
    spaces, evaluators, objectives, limits or reference points are refused.

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
    """Raise StudyError where there is one study alone."""
    runs = [run for group in groups for run in group.runs]
    if len(runs) == 1:
        from dse.errors import StudyError

        hint = "name two or more; dse front shows one, dse studies list all"
        raise StudyError(f"{runs[0].name} alone is compared with nothing", hint=hint)


def show(comparison: Any, output: OutputFormat, file: Path | None = None) -> None:
    """The comparison as a table, as JSON, or as a file of either or of HTML."""
    from dse.report.html.comparison_file import comparison_text
    from dse.report.json.atomic_file import write_whole
    from dse.report.json.comparison import comparison_json
    from dse.report.text.comparison_table import comparison_table

    if file is not None:
        write_whole(file, comparison_text(comparison, file))
        say(f"wrote {file}")
    if output is OutputFormat.JSON:
        show_json(comparison_json(comparison))
    else:
        comparison_table(comparison)


def _judge(comparison: Any, share: float) -> None:
    """End with 1 where a candidate falls short of the first group."""
    from dse.analysis.shortfall import shortfalls

    found = shortfalls(comparison, share)
    for sentence in found:
        say(sentence)
    if found:
        raise typer.Exit(FELL_SHORT)


def _select_indicators(asked: list[Indicating] | None, share: float | None) -> tuple[Any, ...]:
    """Return the indicators that claims are made about.

    With ``share`` the hypervolume is one of them, since its verdict needs a claim about it.
    """
    needed = () if share is None else ("hypervolume",)
    told = [one.value for one in asked or Indicating]
    return tuple(dict.fromkeys((*needed, *told)))


def _share(text: str) -> float:
    """A share from ``5%`` or ``0.05``.

    Raises:
        StudyError: it is none, or not from 0 to below 1.
    """
    from dse.errors import StudyError

    hint = "--fail-if-worse 5%"
    try:
        words = text.strip()
        bare = float(words.removesuffix("%")) / (100 if words.endswith("%") else 1)
    except ValueError as error:
        raise StudyError(f"{text!r} is no share", hint=hint) from error
    if not 0 <= bare < 1:
        raise StudyError(f"{text!r} is not from 0 % to below 100 %", hint=hint)
    return bare
