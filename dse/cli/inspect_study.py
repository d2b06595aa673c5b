"""``dse status``, ``dse front`` and ``dse trials``: what a study knows."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from dse.cli.options import (
    Format,
    FormatOption,
    NameArgument,
    OutputOption,
    StorageOption,
    say,
    show_json,
)


def status(
    name: Annotated[str | None, typer.Argument(help="A study; without, all.")] = None,
    *,
    storage: StorageOption = None,
    output: FormatOption = Format.TABLE,
) -> None:
    """How far a study is: trials by state, measurements, hypervolume, what happened.

    Example: dse status quickstart
    """
    from dse.study import DEFAULT_STORAGE, Study, opened_storage

    opened = opened_storage(storage or DEFAULT_STORAGE)
    names = [name] if name is not None else opened.studies()
    told = [_state(Study.load(one, opened)) for one in names]
    if output is Format.JSON:
        show_json(told[0] if name is not None else told)
        return
    if not told:
        say(f"no studies in {storage or DEFAULT_STORAGE}; begin one with: dse run STUDY.yaml")
    for one in told:
        _print_state(one)


def front(
    name: NameArgument,
    *,
    storage: StorageOption = None,
    output: FormatOption = Format.TABLE,
    file: OutputOption = None,
) -> None:
    """The designs that no other beats.

    Example: dse front quickstart --format json
    """
    from dse.report import export, table
    from dse.study import Study

    study = Study.load(name, storage)
    if output is Format.TABLE:
        table.front_table(study.front, exact=study.exact)
        return
    told = export.front_json(study.name, study.front, study.trials, exact=study.exact)
    _write(output, file, told, lambda: export.front_columns(study.front))


def trials(
    name: NameArgument,
    *,
    storage: StorageOption = None,
    output: FormatOption = Format.TABLE,
    file: OutputOption = None,
) -> None:
    """All trials, with their state and the reason of each that failed.

    Example: dse trials quickstart --format csv -o trials.csv
    """
    from dse.report import export, table
    from dse.study import Study

    study = Study.load(name, storage)
    if output is Format.TABLE:
        table.trials_table(study.problem, study.trials)
        return
    told = export.trials_json(study.name, study.problem, study.trials)
    _write(output, file, told, lambda: export.trials_columns(study.problem, study.trials))
