"""``dse studies export``, ``import``, ``trust`` and ``merge``: transfer of studies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer

from dse.cli import completion as completing
from dse.cli.options import (
    JsonOrTableOption,
    NameArgument,
    OutputFormat,
    StorageOption,
    TrustOption,
    names_of_files,
    say,
    show_json,
    study_path,
)
from dse.report.schemas.transfer_schema import LeftOut


def export_study(
    name: NameArgument,
    *,
    file: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="File to write: .jsonl, .parquet, .csv or .json (Kernel Tuner)."
        ),
    ] = None,
    optuna: Annotated[
        str | None,
        typer.Option("--optuna", help="An Optuna storage: sqlite:///optuna.db, or a journal file."),
    ] = None,
    with_machine: Annotated[
        bool,
        typer.Option("--with-machine", help="Keep the names of hosts, users and folders."),
    ] = False,
    called: Annotated[
        str | None, typer.Option("--name", help="Name in the file or storage; default: the same.")
    ] = None,
    salvage: Annotated[
        bool, typer.Option("--salvage", help="Export the sound rows of a damaged study.")
    ] = False,
    study_file: Annotated[
        str | None,
        typer.Option("--study", help="With --salvage: a study file that replaces a damaged one."),
    ] = None,
    storage: StorageOption = None,
    output: JsonOrTableOption = OutputFormat.TABLE,
) -> None:
    """Export a study to one complete file, or to an Optuna storage for Optuna's dashboard.

    A .jsonl or .parquet file can be imported and resumed; .csv is a table of the trials,
    and .json has the measurements in Kernel Tuner's format T4. Folders and hosts get neutral names
    that do not reveal the machine; an import inserts its own.

    With --salvage every sound row of a damaged study is kept, and the rows left out are listed.
    Trials keep their order but are renumbered; dse verify cannot prove trials that depend on lost
    rows.

    Example: dse studies export quickstart -o quickstart.jsonl
    """
    from dse.errors import StudyError
    from dse.services.studies.salvage_export import salvage_study
    from dse.services.studies.study_transfer import exported_to_optuna, write_study_export
    from dse.study.study_engine import StudyEngine

    if salvage and file is not None and optuna is None:
        path = None if study_file is None else study_path(study_file)
        facts = salvage_study(
            name, file, called=called, study=path, storage=storage, with_machine=with_machine
        )
        lines = [f"left out: {left_out_text(one)}" for one in facts["left_out"]]
        _tell(output, facts, *lines, f"wrote {facts['to']}: {facts['trials']} trials")
        return
    if salvage or study_file is not None:
        hint = "dse studies export NAME --salvage -o FILE.jsonl [--study STUDY.yaml]"
        raise StudyError("--salvage needs -o FILE, and --study needs --salvage", hint=hint)
    study = StudyEngine.load(name, storage)
    if (file is None) == (optuna is None):
        raise StudyError("an export needs exactly one destination", hint="-o FILE, or --optuna URL")
    if file is not None:
        facts = write_study_export(study, file, name=called, with_machine=with_machine)
    else:
        facts = exported_to_optuna(study, str(optuna), name=called, with_machine=with_machine)
    notes = [f"note: {note}" for note in facts["notes"]]
    _tell(output, facts, *notes, f"wrote {facts['to']}: {facts['trials']} trials")


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
        typer.Option("--study", help="Study file of a new study that begins with these trials."),
    ] = None,
    optuna: Annotated[
        str | None, typer.Option("--optuna", help="Name of the study in an Optuna storage.")
    ] = None,
    trust: TrustOption = False,
    folder: Annotated[
        Path, typer.Option("--folder", help="Local folder of the study's files.")
    ] = Path(),
    storage: StorageOption = None,
    output: JsonOrTableOption = OutputFormat.TABLE,
) -> None:
    """Import an exported study, or start a study with trials of another tool.

    The checksums of each line and of the entire file are verified; nothing in the file is run. The
    programs that the study would start are printed, and it cannot be run until you allow it: with
    --trust here, or by `dse studies trust`. With --study, --trust lets models that are programs
    compute the metrics that the trials lack.

    Example: dse studies import quickstart.jsonl --name theirs
    """
    from dse.services.studies.study_transfer import ImportSource, begun_with, restore_study

    if study is None:
        facts = restore_study(source, name=name, storage=storage, trusted=trust, folder=folder)
        words = [f"{facts['study']}: {facts['trials']} trials imported unchanged"]
        words += starting(facts["starts"], facts["problem"])
    else:
        path = study_path(study)
        elsewhere = ImportSource.of(source, path, optuna)
        facts = begun_with(elsewhere, path, name=name, storage=storage, trusted=trust)
        words = [f"note: {count} left out: {reason}" for reason, count in facts["left_out"].items()]
        summary = f"{facts['inside']} trials taken over, {facts['outside']} outside the space"
        words.append(f"{facts['study']}: {summary}")
    _tell(output, facts, *words, _next(facts["study"], facts["trusted"]))


def merge_studies(
    names: Annotated[
        list[str],
        typer.Argument(
            autocompletion=completing.study_names,
            callback=names_of_files,
            is_eager=True,
            help="Studies of one space.",
            show_default=False,
        ),
    ],
    *,
    name: Annotated[str, typer.Option("--name", help="The new study's name.", show_default=False)],
    storage: StorageOption = None,
    output: JsonOrTableOption = OutputFormat.TABLE,
) -> None:
    """Start a study with the finished trials of several studies and the first one's question.

    Their spaces and evaluators must be the same. The merged trials do not count towards the budget.

    Example: dse studies merge monday tuesday --name both
    """
    from dse.services.studies.study_transfer import join_studies
    from dse.storage.trust import has_trust
    from dse.study.study_engine import StudyEngine

    studies = [StudyEngine.load(one, storage) for one in names]
    facts, kept = join_studies(studies, name), studies[0].storage
    summary = f"{name}: {kept.events(name)[0].text}"
    _tell(output, facts, summary, _next(name, has_trust(kept, name)))


def trust_study(
    name: NameArgument,
    *,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    storage: StorageOption = None,
    output: JsonOrTableOption = OutputFormat.TABLE,
) -> None:
    """Allow an imported study to be run, after showing which programs it would start.

    Example: dse studies trust theirs --yes
    """
    from dse.services.studies.trust_consent import trust_facts
    from dse.services.studies.trust_consent import trust_study as trusted
    from dse.study.storage_access import DEFAULT_STORAGE, opened_storage

    opened = opened_storage(storage or DEFAULT_STORAGE)
    known = trust_facts(opened, name)
    if output is OutputFormat.TABLE:
        for line in starting(known["starts"], known["problem"]):
            say(line)
    if not (yes or known["trusted"] or known["problem"]):
        typer.confirm(f"may {name!r} be run?", abort=True, err=True)
    _tell(output, trusted(opened, name), f"{name} may be run", _next(name))


def starting(starts: Sequence[str], problem: str) -> list[str]:
    """Return lines that list the programs a study would start, or why they are unknown."""
    if problem:
        return [f"what running it would start is unknown: {problem}"]
    if not starts:
        return ["running it starts no program"]
    return ["running it starts:", *(f"  {line}" for line in starts)]


def left_out_text(one: LeftOut) -> str:
    """Return the omitted rows of a damaged study as text: ``trials 4, 7-9: missing``."""
    runs = (str(first) if first == last else f"{first}-{last}" for first, last in one["rows"])
    return f"{' '.join(filter(None, [one['part'], ', '.join(runs)]))}: {one['reason']}"


def _next(name: str, trusted: bool = True) -> str:  # noqa: FBT001, FBT002 - a fact, not a switch
    import shlex

    if not trusted:
        return f"not trusted yet; to run it: dse studies trust {shlex.quote(name)}"
    return f"go on with it: dse resume {shlex.quote(name)}"


def _tell(output: OutputFormat, facts: Mapping[str, object], *words: str) -> None:
    if output is OutputFormat.JSON:
        show_json(facts)
        return
    for sentence in words:
        say(sentence)
