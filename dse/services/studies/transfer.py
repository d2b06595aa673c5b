"""Studies as files, elsewhere, and together: written, read again, and merged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from dse.core.trial import State
from dse.errors import StorageError
from dse.interop.archive import archive as portable
from dse.interop.archive.record import Record, about
from dse.interop.archive.restore import restore
from dse.interop.archive.stream import open_stream, open_trials
from dse.interop.found_trials import ExternalTrial, read_table
from dse.interop.merge import merge_records
from dse.interop.optuna.storage import read_study, write_study
from dse.protocols import Storage
from dse.report.json.atomic_file import write_whole
from dse.report.json.columns import csv_texts, trials_sheets
from dse.report.schemas.transfer import Exported, Imported, Joined
from dse.schema.history.record import identity_of
from dse.schema.history.without_storages import storageless
from dse.schema.study.plan import plan_of
from dse.services.studies.anonymize import localize_record, nameless, names_of
from dse.services.studies.trust import named_programs, trust_facts
from dse.storage.trust import has_trust
from dse.study.import_trials import begun
from dse.study.proposers import CARRIED
from dse.study.study import DEFAULT_STORAGE, StudyEngine, check_name, opened_storage
from dse.system.credentials import mask_url


def write_study_export(
    study: StudyEngine, file: Path, *, name: str | None = None, with_machine: bool = False
) -> Exported:
    """Write a study as one file.

    ``.jsonl`` and ``.parquet`` hold all of it, ``.csv`` its trials.

    Args:
        study: the study.
        file: where to; the ending says as what.
        name: what it is called there.
        with_machine: with the names of hosts, users and folders as they are.

    Raises:
        StorageError: the file cannot be written, or has another ending.
    """
    told = name or study.name
    if file.suffix == ".csv":
        names = names_of(study)
        with open_trials(study.storage, study.name) as trials:
            sheets = trials_sheets(study.problem, trials)
            write_whole(file, csv_texts(sheets if with_machine else map(names.sheet, sheets)))
            return _build_export_result(told, trials.size, str(file))
    with open_stream(study.storage, study.name) as stream:
        spec = storageless(stream.spec)
        shown = replace(stream, study=told, spec=spec, about=about(study.problem))
        digest = portable.write(shown if with_machine else nameless(shown), file)
        return _build_export_result(told, stream.count, str(file), sha256=digest)


def exported_to_optuna(
    study: StudyEngine, url: str, *, name: str | None = None, with_machine: bool = False
) -> Exported:
    """Write a study's finished trials into a storage of Optuna.

    Args:
        study: the study.
        url: ``sqlite:///optuna.db``, or a journal file.
        name: what it is called there.
        with_machine: with the names of hosts, users and folders as they are.

    Raises:
        PluginError: Optuna is not installed.
        StorageError: the storage cannot be written, or has such a study.
    """
    told = name or study.name
    finished = study.finished if with_machine else names_of(study).faults(study.finished)
    notes = write_study(study.problem, finished, told, url)
    to = mask_url(url) if "://" in url else url
    return _build_export_result(told, len(study.trials), to, notes=notes)


def _build_export_result(
    study: str, trials: int, to: str, *, sha256: str | None = None, notes: Sequence[str] = ()
) -> Exported:
    return {
        "study": study,
        "trials": trials,
        "to": to,
        "sha256": sha256,
        "notes": list(notes),
        "left_out": [],
    }


def restore_study(
    source: str | Path,
    *,
    name: str | None = None,
    storage: str | Storage | None = None,
    trusted: bool = False,
    folder: Path = Path(),
) -> Imported:
    """Import a study from an exported file; nothing in it is run.

    Args:
        source: a file that :func:`write_study_export` wrote.
        name: instead of the study's own.
        storage: where to, or its URL.
        trusted: it may be run at once; else it waits for the user's word.
        folder: where the files of the study are here; a file of it may name them by no other.

    Raises:
        StorageError: it is damaged, or a table that tells no study.
        StudyError: there is a study of that name, or it is none.
    """
    if "://" in str(source) or str(source).endswith(".csv"):
        raise StorageError(f"{source} tells trials, but no study", hint="say which: --study FILE")
    record = localize_record(portable.read_archive(source), folder)
    chosen = record.study if name is None else name
    check_name(chosen)
    opened = opened_storage(storage or DEFAULT_STORAGE, begins=True)
    restore(record, opened, name=chosen, trusted=trusted)
    known = trust_facts(opened, chosen)
    return {
        "study": chosen,
        "trials": len(record.trials),
        "finished": len(record.finished_order),
        "inside": sum(trial.state is not State.OUTSIDE for trial in record.trials),
        "outside": sum(trial.state is State.OUTSIDE for trial in record.trials),
        "left_out": {},
        "trusted": trusted,
        "starts": known["starts"],
        "problem": known["problem"],
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Elsewhere:
    """Trials from elsewhere: a table, or a study of Optuna.

    The first field holds the source as the record states it.
    """

    told: str
    found: Sequence[ExternalTrial]

    @staticmethod
    def of(source: str, file: Path, optuna: str | None = None) -> Elsewhere:
        """The trials of a source.

        Args:
            source: a CSV table, an Optuna storage or its journal.
            file: the study file that they are to begin.
            optuna: which study of Optuna's; needless where there is one.

        Raises:
            StorageError: the source cannot be read.
            SpecErrors: the study file has mistakes.
        """
        if source.endswith(".csv"):
            return Elsewhere(told=source, found=read_table(source))
        goals = [objective.goal for objective in plan_of(file).problem.objectives]
        told, found = read_study(optuna, source, goals)
        return Elsewhere(told=told, found=found)


def begun_with(
    elsewhere: Elsewhere,
    file: Path,
    *,
    name: str | None = None,
    storage: str | Storage | None = None,
    trusted: bool = False,
) -> Imported:
    """Begin the study of a file with trials that were found elsewhere.

    Args:
        elsewhere: the trials.
        file: the study file.
        name: instead of the file's.
        storage: where to, or its URL.
        trusted: its modelled evaluators may start programs now, and its ``prior`` be opened.

    Raises:
        StudyError: no trial can be taken, or there is a study of that name.
        SpecErrors: the file has mistakes.
    """
    new = begun(
        file, elsewhere.found, source=elsewhere.told, name=name, storage=storage, trusted=trusted
    )
    return {
        "study": new.study.name,
        "trials": new.inside + new.outside,
        "finished": new.inside + new.outside,
        "inside": new.inside,
        "outside": new.outside,
        "left_out": dict(new.left_out),
        "trusted": True,
        "starts": named_programs(new.study.plan),
        "problem": "",
    }


def join_studies(studies: Sequence[StudyEngine], name: str) -> Joined:
    """Begin a study with the finished trials of several; it asks what the first one asks.

    It is kept where the first one is. The trials count for no budget.

    Raises:
        StudyError: their spaces or evaluators differ, or there is a study of that name.
    """
    check_name(name)
    records = [Record.of(one.storage, one.name) for one in studies]
    records = [replace(one, spec=storageless(one.spec)) for one in records]
    identities = [identity_of(record.spec) for record in records]
    found = merge_records(records, identities, name, by=CARRIED)
    trusted = has_trust(studies[0].storage, studies[0].name)  # what runs is what that one says
    restore(found.record, studies[0].storage, trusted=trusted)
    return {
        "study": name,
        "trials": len(found.record.trials),
        "shared": found.shared,
        "unlike": found.unlike,
    }
