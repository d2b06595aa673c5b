"""The studies of a storage as a whole: listed, brought in from files, and merged."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from dse.api.study import Study
from dse.errors import StudyError

if TYPE_CHECKING:
    from dse.protocols import Storage
    from dse.report.schemas.study import StudyRow
    from dse.report.schemas.transfer import Imported, Joined


def studies(storage: str | Storage | None = None) -> list[StudyRow]:
    """The studies of a storage, each with its trials and its question.

    Example:
        ``[row["study"] for row in studies("sqlite:///dse.db")]``

    Args:
        storage: a storage or its URL; ``sqlite:///dse.db`` where nothing is said.

    Raises:
        StorageError: it cannot be opened.
    """
    from dse.services.studies.catalogue import study_rows

    return study_rows(storage)


def import_study(
    source: str | Path,
    *,
    name: str | None = None,
    study: str | Path | None = None,
    optuna: str | None = None,
    trust: bool = False,
    folder: str | Path = "",
    storage: str | Storage | None = None,
) -> Imported:
    """Read a study that was exported, or begin one with trials that were found elsewhere.

    A file is checked line by line and as a whole; nothing in it is run. An exported study is not
    run before you trust it: ``starts`` lists what it names, and :meth:`StudyRecord.trust` lets it.

    Example:
        ``Study.load(import_study("quickstart.jsonl", name="theirs")["study"])``

    Args:
        source: a file that :meth:`StudyRecord.export` wrote; with ``study`` a CSV table, an Optuna
            storage or its journal.
        name: the new study's, instead of its own.
        study: the study file that trials of elsewhere are to begin.
        optuna: which study of an Optuna storage.
        trust: the study may be run at once; with ``study``, its models may start programs now.
        folder: where the files of an exported study are here; the present folder without.
        storage: where to, or its URL; ``sqlite:///dse.db`` where nothing is said.

    Raises:
        StorageError: the source is damaged or cannot be read.
        StudyError: there is a study of that name, or no trial can be taken.
    """
    from dse.schema.yaml.files import resolve_path
    from dse.services.studies.transfer import Elsewhere, begun_with, restore_study

    if study is None:
        place = Path(folder)
        return restore_study(source, name=name, storage=storage, trusted=trust, folder=place)
    path = resolve_path(str(study), Path.cwd() / "study.yaml")
    elsewhere = Elsewhere.of(str(source), path, optuna)
    return begun_with(elsewhere, path, name=name, storage=storage, trusted=trust)


def merge(*studies: Study | str, name: str, storage: str | Storage | None = None) -> Joined:
    """Begin a study with the finished trials of several; it asks what the first one asks.

    Their spaces and evaluators have to be the same. The trials count for no budget. The new study
    is kept where the first one is.

    Example:
        ``merge("monday", "tuesday", name="both")``

    Args:
        studies: each a study, or the name of a stored one.
        name: the new study's.
        storage: where names are looked up, or its URL.

    Raises:
        StudyError: they differ, or there is a study of that name.
    """
    from dse.services.studies.transfer import join_studies
    from dse.study import study as engine

    if not studies:
        raise StudyError("there is no study to merge", hint="name at least one")
    held = [
        one.engine if isinstance(one, Study) else engine.StudyEngine.load(one, storage)
        for one in studies
    ]
    return join_studies(held, name)
