"""``dse studies export``, ``import`` and ``merge``: studies as files, elsewhere, and together."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Annotated, Any

import typer

from dse.cli.options import Format, FormatOption, NameArgument, StorageOption, say, show_json


def export_study(
    name: NameArgument,
    *,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="study.jsonl, study.parquet or study.csv."),
    ] = None,
    optuna: Annotated[
        str | None,
        typer.Option("--optuna", help="An Optuna storage: sqlite:///optuna.db, or a journal file."),
    ] = None,
    called: Annotated[
        str | None, typer.Option("--name", help="What it is called there; by default the same.")
    ] = None,
    storage: StorageOption = None,
    form: FormatOption = Format.TABLE,
) -> None:
    """Write a study as one file that says all of it, or for Optuna's dashboard.

    Lines of JSON and Parquet can be imported again, and gone on with. CSV is a table of trials.

    Example: dse studies export quickstart -o quickstart.jsonl
    """
    from dse.errors import StudyError
    from dse.study import Study

    study = Study.load(name, storage)
    if (output is None) == (optuna is None):
        raise StudyError("where to?", hint="-o FILE, or --optuna URL")
    told, to = called or name, str(output or optuna)
    facts: dict[str, Any] = {"study": told, "trials": len(study.trials), "to": to}
    notes: list[str] = []
    if optuna is not None:
        from dse.interchange.optuna_storage import write_study

        notes = write_study(study.problem, study.finished, told, optuna)
    elif output is not None:
        facts |= _written(study, told, output)
    for note in notes:
        say(f"note: {note}")
    _tell(form, {**facts, "notes": notes}, f"wrote {to}: {facts['trials']} trials")


def import_study(
    source: Annotated[
        str,
        typer.Argument(
            help="A file of `dse studies export`; with --study a CSV table or an Optuna storage.",
            show_default=False,
        ),
    ],
    *,
    name: Annotated[
        str | None, typer.Option("--name", help="The new study's name, instead of its own.")
    ] = None,
    study: Annotated[
        str | None,
        typer.Option("--study", help="The study file that trials of elsewhere are to begin."),
    ] = None,
    optuna: Annotated[
        str | None, typer.Option("--optuna", help="Which study of an Optuna storage.")
    ] = None,
    storage: StorageOption = None,
    form: FormatOption = Format.TABLE,
) -> None:
    """Read a study that was exported, or begin one with trials that were found elsewhere.

    A file is checked line by line and as a whole; nothing in it is run. Going on with a stranger's
    study runs its evaluators, commands too: look at them first.

    Example: dse studies import quickstart.jsonl --name theirs
    """
    if study is None:
        _tell(form, *_restored(source, name, storage))
    else:
        _tell(form, *_begun(source, name, storage, study=study, optuna=optuna))


def merge_studies(
    names: Annotated[list[str], typer.Argument(help="Studies of one space.", show_default=False)],
    *,
    name: Annotated[str, typer.Option("--name", help="The new study.", show_default=False)],
    storage: StorageOption = None,
    form: FormatOption = Format.TABLE,
) -> None:
    """Begin a study with the finished trials of several; it asks what the first one asks.

    Their spaces and evaluators have to be the same. The trials count for no budget.

    Example: dse studies merge monday tuesday --name both
    """
    from dse.interchange.merged import merged
    from dse.interchange.portable_record import Record
    from dse.interchange.portable_restore import restore
    from dse.schema.record import identity_of
    from dse.study import Study
    from dse.suggesting import CARRIED

    studies = [Study.load(one, storage) for one in names]
    opened = studies[0].storage
    records = [Record.of(opened, one.name) for one in studies]
    identities = [identity_of(record.spec) for record in records]
    found = merged(records, identities, name, by=CARRIED)
    _check_name(name)
    restore(found.record, opened)
    facts = {
        "study": name,
        "trials": len(found.record.trials),
        "shared": found.shared,
        "unlike": found.unlike,
    }
    _tell(form, facts, f"{name}: {found.record.events[0].text}", _next(name))


def _written(study: Any, told: str, output: Path) -> dict[str, Any]:
    """What was written beside the trials: the check sum of a whole study."""
    from dataclasses import replace

    from dse.cli.report import write_whole
    from dse.interchange import portable
    from dse.interchange.portable_record import Record, about
    from dse.report.sheet import trials_columns, write_csv

    if output.suffix == ".csv":
        text = io.StringIO()
        write_csv(trials_columns(study.problem, study.trials), text)
        write_whole(output, text.getvalue())
        return {}
    record = Record.of(study.storage, study.name)
    record = replace(record, study=told, about=about(study.problem))
    return {"sha256": portable.write(record, output)}


def _restored(source: str, name: str | None, storage: str | None) -> tuple[Any, ...]:
    from dse.errors import StorageError
    from dse.interchange import portable
    from dse.interchange.portable_restore import restore
    from dse.study import DEFAULT_STORAGE, opened_storage

    if "://" in source or source.endswith(".csv"):
        raise StorageError(f"{source} tells trials, but no study", hint="say which: --study FILE")
    record = portable.read(source)
    chosen = record.study if name is None else name
    _check_name(chosen)
    restore(record, opened_storage(storage or DEFAULT_STORAGE, begins=True), name=chosen)
    facts = {"study": chosen, "trials": len(record.trials), "finished": len(record.finished_order)}
    return facts, f"{chosen}: {facts['trials']} trials, as they were", _next(chosen)


def _begun(
    source: str, name: str | None, storage: str | None, *, study: str, optuna: str | None
) -> tuple[Any, ...]:
    from dse.cli.options import study_path
    from dse.foreign import begun
    from dse.interchange.found import read_table
    from dse.interchange.optuna_storage import read_study
    from dse.schema.plan import plan_of

    path = study_path(study)
    told = source
    if source.endswith(".csv"):
        found = read_table(source)
    else:
        goals = [objective.goal for objective in plan_of(path).problem.objectives]
        told, found = read_study(optuna, source, goals)
    new = begun(path, found, source=told, name=name, storage=storage)
    for reason, count in new.left_out.items():
        say(f"note: {count} left out: {reason}")
    facts = {
        "study": new.study.name,
        "inside": new.inside,
        "outside": new.outside,
        "left_out": dict(new.left_out),
    }
    words = f"{new.study.name}: {new.inside} trials taken over, {new.outside} outside the space"
    return facts, words, _next(new.study.name)


def _check_name(name: str) -> None:
    """Nothing, if a study can be called so: a stranger's file may say anything."""
    import re

    from dse.errors import StudyError
    from dse.schema.models import NAME

    if not re.fullmatch(NAME, name):
        hint = "letters, digits, '_', '-', '.', spaces: --name NAME"
        raise StudyError(f"{name[:60]!r} is no name", hint=hint)


def _next(name: str) -> str:
    import shlex

    return f"go on with it: dse resume {shlex.quote(name)}"


def _tell(form: Format, facts: dict[str, Any], *words: str) -> None:
    if form is Format.JSON:
        show_json(facts)
        return
    for sentence in words:
        say(sentence)
