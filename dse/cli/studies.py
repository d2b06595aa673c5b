"""``dse studies list``, ``delete`` and ``migrate``: management of stored studies."""

from __future__ import annotations

import shlex
from typing import Annotated

import typer

from dse.cli import completion as completing
from dse.cli.options import (
    JsonOrTableOption,
    NameArgument,
    OutputFormat,
    StorageOption,
    say,
    show_json,
    study_path,
)
from dse.report.schemas.study_schema import CarriedOver, StudyRow
from dse.system.terminal_text import visible


def list_studies(
    *, storage: StorageOption = None, output: JsonOrTableOption = OutputFormat.TABLE
) -> None:
    """List the studies of a storage.

    Example: dse studies list
    """
    from dse.report.text.trial_tables import studies_table
    from dse.services.studies.study_list import study_rows
    from dse.study.storage_access import DEFAULT_STORAGE

    rows = study_rows(storage)
    if output is OutputFormat.JSON:
        show_json(rows)
        return
    if not rows:
        say(f"no studies in {storage or DEFAULT_STORAGE}; begin one with: dse run STUDY.yaml")
    studies_table(list(map(_line, rows)))


def _line(row: StudyRow) -> dict[str, object]:
    """Return a study's table row; for a damaged study, the error replaces its question."""
    shown: dict[str, object] = {
        name: "?" if value is None else value for name, value in row.items() if name != "problem"
    }
    return {**shown, "question": row["problem"]} if row["problem"] else shown


def delete_study(
    name: NameArgument,
    *,
    storage: StorageOption = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    output: JsonOrTableOption = OutputFormat.TABLE,
) -> None:
    """Delete a study and all its trials.

    Example: dse studies delete quickstart --yes
    """
    from dse.services.studies.study_list import forgettable
    from dse.study.storage_access import DEFAULT_STORAGE, opened_storage

    opened = opened_storage(storage or DEFAULT_STORAGE)
    facts = forgettable(opened, name)
    if not yes:
        count = "" if facts["trials"] is None else f"{facts['trials']} "
        question = visible(f"delete {name!r} and its {count}trials?")
        typer.confirm(question, abort=True, err=True)
    opened.delete(name)
    if output is OutputFormat.JSON:
        show_json(facts)
    else:
        say(f"{name} was deleted")


def migrate_study(
    name: NameArgument,
    file: Annotated[
        str,
        typer.Argument(
            autocompletion=completing.study_files,
            help="The study file with the new space.",
            metavar="STUDY",
        ),
    ],
    *,
    to: Annotated[
        str | None,
        typer.Option("--to", help="The new study's name.", show_default="the file's, or with -2"),
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", help="Value of a new parameter in the old trials: name=value."),
    ] = None,
    storage: StorageOption = None,
    output: JsonOrTableOption = OutputFormat.TABLE,
) -> None:
    """Start a study with a changed space from the trials of an old study.

    Trials that are still legal become trials of the new study; the others are marked as outside
    the space, and surrogates learn from them. The old study is not changed.

    Example: dse studies migrate quickstart wider.yaml --set chip.voltage=0.9
    """
    from dse.cli.settings import settings
    from dse.schema.study.plan import plan_of
    from dse.study.migrate import migrate_stored_study
    from dse.study.storage_access import DEFAULT_STORAGE

    path = study_path(file)
    fixed = settings(set_ or [], plan_of(path).problem.space)
    carried = migrate_stored_study(
        name, path, to=to, settings=fixed, storage=storage or DEFAULT_STORAGE
    )
    facts: CarriedOver = {
        "study": carried.study.name,
        "inside": carried.inside,
        "outside": carried.outside,
    }
    if output is OutputFormat.JSON:
        show_json(facts)
        return
    say(f"{facts['study']}: {facts['inside']} trials carried over, {facts['outside']} outside")
    say(f"go on with it: dse resume {shlex.quote(facts['study'])}")
