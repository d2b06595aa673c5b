"""``dse studies export``, ``import``, ``trust`` and ``merge``: studies as files and together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer

from dse.cli import completion as completing
from dse.cli.options import (
    NameArgument,
    OutputFormat,
    StorageOption,
    ToldOption,
    TrustOption,
    say,
    show_json,
    study_path,
)
from dse.report.schemas.transfer import LeftOut


def export_study(
    name: NameArgument,
    *,
    file: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="study.jsonl, study.parquet or study.csv."),
    ] = None,
    optuna: Annotated[
        str | None,
        typer.Option("--optuna", help="An Optuna storage: sqlite:///optuna.db, or a journal file."),
    ] = None,
    with_machine: Annotated[
        bool,
        typer.Option("--with-machine", help="Keep the names of hosts, users and folders in it."),
    ] = False,
    called: Annotated[
        str | None, typer.Option("--name", help="What it is called there; by default the same.")
    ] = None,
    salvage: Annotated[
        bool, typer.Option("--salvage", help="Write what is sound of a damaged study.")
    ] = False,
    study_file: Annotated[
        str | None,
        typer.Option("--study", help="With --salvage: the study file, where that is damaged too."),
    ] = None,
    storage: StorageOption = None,
    output: ToldOption = OutputFormat.TABLE,
) -> None:
    """Write a study as one complete file, or for Optuna's dashboard.

    Lines of JSON and Parquet can be imported again, and gone on with. CSV is a table of trials.
    Folders and hosts get names that tell nothing of the machine; an import puts its own in place.

    With --salvage every sound row of a damaged study is kept, and told what was left out. Trials
    keep their order and are numbered anew; dse verify cannot prove what was asked knowing more.

    Example: dse studies export quickstart -o quickstart.jsonl
    """
    from dse.errors import StudyError
    from dse.services.studies.salvage import salvage_study
    from dse.services.studies.transfer import exported_to_optuna, write_study_export
    from dse.study.study import StudyEngine

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
        raise StudyError("--salvage writes a file, and --study belongs to it", hint=hint)
    study = StudyEngine.load(name, storage)
    if (file is None) == (optuna is None):
        raise StudyError("where to?", hint="-o FILE, or --optuna URL")
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
        typer.Option("--study", help="The study file that trials of elsewhere are to begin."),
    ] = None,
    optuna: Annotated[
        str | None, typer.Option("--optuna", help="Which study of an Optuna storage.")
    ] = None,
    trust: TrustOption = False,
    folder: Annotated[
        Path, typer.Option("--folder", help="Where the study's files are here.")
    ] = Path(),
    storage: StorageOption = None,
    output: ToldOption = OutputFormat.TABLE,
) -> None:
    """Read a study that was exported, or begin one with trials that were found elsewhere.

    A file is checked line by line and as a whole; nothing in it is run. What running it would start
    is printed, and it is not run before you say so: with --trust here, or by `dse studies trust`.
    With --study, --trust lets models that are programs compute what the trials lack.

    Example: dse studies import quickstart.jsonl --name theirs
    """
    from dse.services.studies.transfer import Elsewhere, begun_with, restore_study

    if study is None:
        facts = restore_study(source, name=name, storage=storage, trusted=trust, folder=folder)
        words = [f"{facts['study']}: {facts['trials']} trials, as they were"]
        words += starting(facts["starts"], facts["problem"])
    else:
        path = study_path(study)
        elsewhere = Elsewhere.of(source, path, optuna)
        facts = begun_with(elsewhere, path, name=name, storage=storage, trusted=trust)
        words = [f"note: {count} left out: {reason}" for reason, count in facts["left_out"].items()]
        told = f"{facts['inside']} trials taken over, {facts['outside']} outside the space"
        words.append(f"{facts['study']}: {told}")
    _tell(output, facts, *words, _next(facts["study"], facts["trusted"]))


def merge_studies(
    names: Annotated[
        list[str],
        typer.Argument(
            autocompletion=completing.study_names, help="Studies of one space.", show_default=False
        ),
    ],
    *,
    name: Annotated[str, typer.Option("--name", help="The new study.", show_default=False)],
    storage: StorageOption = None,
    output: ToldOption = OutputFormat.TABLE,
) -> None:
    """Begin a study with the finished trials of several; it asks what the first one asks.

    Their spaces and evaluators have to be the same. The trials count for no budget.

    Example: dse studies merge monday tuesday --name both
    """
    from dse.services.studies.transfer import join_studies
    from dse.storage.trust import has_trust
    from dse.study.study import StudyEngine

    studies = [StudyEngine.load(one, storage) for one in names]
    facts, kept = join_studies(studies, name), studies[0].storage
    told = f"{name}: {kept.events(name)[0].text}"
    _tell(output, facts, told, _next(name, has_trust(kept, name)))


def trust_study(
    name: NameArgument,
    *,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    storage: StorageOption = None,
    output: ToldOption = OutputFormat.TABLE,
) -> None:
    """Let an imported study be run: what that would start is shown first.

    Example: dse studies trust theirs --yes
    """
    from dse.services.studies.trust import trust_facts
    from dse.services.studies.trust import trust_study as trusted
    from dse.study.study import DEFAULT_STORAGE, opened_storage

    opened = opened_storage(storage or DEFAULT_STORAGE)
    known = trust_facts(opened, name)
    if output is OutputFormat.TABLE:
        for line in starting(known["starts"], known["problem"]):
            say(line)
    if not (yes or known["trusted"] or known["problem"]):
        typer.confirm(f"may {name!r} be run?", abort=True, err=True)
    _tell(output, trusted(opened, name), f"{name} may be run", _next(name))


def starting(starts: Sequence[str], problem: str) -> list[str]:
    """Return lines on what running a study would start, or on why that is unknown."""
    if problem:
        return [f"what running it would start cannot be told: {problem}"]
    if not starts:
        return ["running it starts no program"]
    return ["running it starts:", *(f"  {line}" for line in starts)]


def left_out_text(one: LeftOut) -> str:
    """Return which rows were left out: ``trials 4, 7-9: missing``."""
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
