"""Functions on the studies of a storage: list, import and merge them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from dse.api.study import Study
from dse.errors import StudyError

if TYPE_CHECKING:
    from dse.protocols import Storage
    from dse.report.schemas.study_schema import StudyRow
    from dse.report.schemas.transfer_schema import Imported, Joined


def studies(storage: str | Storage | None = None) -> list[StudyRow]:
    """Return the studies of a storage, each with its number of trials and its ``question`` text.

    Example:
        ``[row["study"] for row in studies("sqlite:///dse.db")]``

    Args:
        storage: a storage or its URL; default: ``sqlite:///dse.db``.

    Raises:
        StorageError: the storage cannot be opened.
    """
    from dse.services.studies.study_list import study_rows

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
    """Import an exported study, or create a study from trials of another tool.

    The file is validated; nothing in it is executed. An imported study cannot run before it is
    trusted: ``starts`` lists the programs and functions that it would call, and
    :meth:`StudyRecord.trust` allows them.

    Example:
        ``Study.load(import_study("quickstart.jsonl", name="theirs")["study"])``

    Args:
        source: a file written by :meth:`StudyRecord.export`; with ``study``, a CSV table, an
            Optuna storage or an Optuna journal.
        name: the new study's name; default: that of the source.
        study: the study file for trials of another tool.
        optuna: the name of the study in an Optuna storage.
        trust: allow the imported study to run; with ``study``, allow its models to start programs
            during the import.
        folder: the folder with the files that an exported study refers to; default: the current
            one.
        storage: the target storage or its URL; default: ``sqlite:///dse.db``.

    Raises:
        StorageError: the source is damaged or cannot be read.
        StudyError: a study of that name exists, or no trial can be imported.
    """
    from dse.schema.yaml.files import resolve_path
    from dse.services.studies.study_transfer import ImportSource, begun_with, restore_study

    if study is None:
        place = Path(folder)
        return restore_study(source, name=name, storage=storage, trusted=trust, folder=place)
    path = resolve_path(str(study), Path.cwd() / "study.yaml")
    elsewhere = ImportSource.of(str(source), path, optuna)
    return begun_with(elsewhere, path, name=name, storage=storage, trusted=trust)


def merge(*studies: Study | str, name: str, storage: str | Storage | None = None) -> Joined:
    """Create a study, defined as the first of several studies, with the finished trials of all.

    The spaces and evaluators of the studies must be the same. The imported trials do not count
    towards a budget. The new study is stored in the storage of the first study.

    Example:
        ``merge("monday", "tuesday", name="both")``

    Args:
        studies: studies, or names of stored studies.
        name: the new study's name.
        storage: the storage, or its URL, in which names are looked up.

    Raises:
        StudyError: the studies differ, or a study of that name exists.
    """
    from dse.services.studies.study_transfer import join_studies
    from dse.study import study_engine as engine

    if not studies:
        raise StudyError("there is no study to merge", hint="name at least one")
    held = [
        one.engine if isinstance(one, Study) else engine.StudyEngine.load(one, storage)
        for one in studies
    ]
    return join_studies(held, name)
