"""Export, import and merge of studies: files, Optuna storages and tables of trials."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from dse.core.trial import State
from dse.errors import StorageError
from dse.interop.archive import archive as portable
from dse.interop.archive.archive import restore
from dse.interop.archive.stream import open_stream, open_trials
from dse.interop.archive.study_record import Record, about
from dse.interop.found_trials import ExternalTrial, read_table
from dse.interop.kernel_tuner import write_t4
from dse.interop.merge import merge_records
from dse.interop.optuna.optuna_storage import read_study, write_study
from dse.protocols import Storage
from dse.report.json.atomic_file import write_whole
from dse.report.json.columns import csv_texts, trials_sheets
from dse.report.schemas.transfer_schema import Exported, Imported, Joined
from dse.schema.history.recorded_specification import identity_of
from dse.schema.history.without_storages import storageless
from dse.schema.study.plan import plan_of
from dse.services.studies.anonymize import localize_record, nameless, names_of
from dse.services.studies.trust_consent import named_programs, trust_facts
from dse.storage.trust import has_trust
from dse.study.import_trials import begun
from dse.study.proposers import CARRIED
from dse.study.storage_access import DEFAULT_STORAGE, check_name, opened_storage
from dse.study.study_engine import StudyEngine
from dse.system.credentials import mask_url


def write_study_export(
    study: StudyEngine, file: Path, *, name: str | None = None, with_machine: bool = False
) -> Exported:
    """Export a study to one file.

    ``.jsonl`` and ``.parquet`` hold the complete study, ``.csv`` only its trials, and ``.json`` its
    measurements as results of Kernel Tuner (T4).

    Args:
        study: the study.
        file: target file; the suffix selects the format.
        name: name of the study in the file; by default unchanged.
        with_machine: keep the names of hosts, users and folders.

    Raises:
        StorageError: the file cannot be written, or has another ending.
    """
    study_name = name or study.name
    if file.suffix == ".json":
        trials = study.trials
        write_whole(file, write_t4(study.problem, trials))
        return _build_export_result(study_name, len(trials), str(file))
    if file.suffix == ".csv":
        names = names_of(study)
        with open_trials(study.storage, study.name) as stream_of_trials:
            sheets = trials_sheets(study.problem, stream_of_trials)
            write_whole(file, csv_texts(sheets if with_machine else map(names.sheet, sheets)))
            return _build_export_result(study_name, stream_of_trials.size, str(file))
    with open_stream(study.storage, study.name) as stream:
        spec = storageless(stream.spec)
        shown = replace(stream, study=study_name, spec=spec, about=about(study.problem))
        digest = portable.write(shown if with_machine else nameless(shown), file)
        return _build_export_result(study_name, stream.count, str(file), sha256=digest)


def exported_to_optuna(
    study: StudyEngine, url: str, *, name: str | None = None, with_machine: bool = False
) -> Exported:
    """Export the finished trials of a study to an Optuna storage.

    Args:
        study: the study.
        url: ``sqlite:///optuna.db``, or a journal file.
        name: name of the study in Optuna; by default unchanged.
        with_machine: keep the names of hosts, users and folders.

    Raises:
        PluginError: Optuna is not installed.
        StorageError: the storage cannot be written, or has such a study.
    """
    study_name = name or study.name
    finished = study.finished if with_machine else names_of(study).failures(study.finished)
    notes = write_study(study.problem, finished, study_name, url)
    to = mask_url(url) if "://" in url else url
    return _build_export_result(study_name, len(study.trials), to, notes=notes)


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
        name: new name of the study; by default the name in the file.
        storage: target storage, or its URL.
        trusted: the study may be run at once; otherwise the user must trust it first.
        folder: folder of the study's files on this machine, which replaces that in the file.

    Raises:
        StorageError: the file is damaged, or is a table of trials without a study.
        StudyError: there is a study of that name already, or the name is not valid.
    """
    if "://" in str(source) or str(source).endswith(".csv"):
        raise StorageError(f"{source} has trials, but no study", hint="name its file: --study FILE")
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
class ImportSource:
    """Trials to import from an external source: a table, or an Optuna study.

    ``found`` are the trials. ``source`` describes their origin, which the study records.
    """

    source: str
    found: Sequence[ExternalTrial]

    @staticmethod
    def of(source: str, file: Path, optuna: str | None = None) -> ImportSource:
        """Read the trials of an external source.

        Args:
            source: a CSV table, an Optuna storage or its journal.
            file: the study file that the trials will be imported into.
            optuna: name of the Optuna study; optional if there is only one.

        Raises:
            StorageError: the source cannot be read.
            SpecErrors: the study file has mistakes.
        """
        if source.endswith(".csv"):
            return ImportSource(source=source, found=read_table(source))
        goals = [objective.goal for objective in plan_of(file).problem.objectives]
        source_name, found = read_study(optuna, source, goals)
        return ImportSource(source=source_name, found=found)


def begun_with(
    elsewhere: ImportSource,
    file: Path,
    *,
    name: str | None = None,
    storage: str | Storage | None = None,
    trusted: bool = False,
) -> Imported:
    """Create the study that a study file describes, with imported trials.

    Args:
        elsewhere: the external trials and their source.
        file: the study file.
        name: name of the study; by default that in the file.
        storage: target storage, or its URL.
        trusted: allow evaluators of the file that compute imported metrics to start programs, and
            the studies that its ``transfer_from`` names to be opened.

    Raises:
        StudyError: no trial can be imported, or there is a study of that name already.
        SpecErrors: the file has mistakes.
    """
    new = begun(
        file, elsewhere.found, source=elsewhere.source, name=name, storage=storage, trusted=trusted
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
    """Create a study from the finished trials of several studies, with the problem of the first.

    The new study is stored in the storage of the first study. The trials do not count against its
    budget.

    Raises:
        StudyError: the spaces or evaluators differ, or there is a study of that name already.
    """
    check_name(name)
    records = [Record.of(one.storage, one.name) for one in studies]
    records = [replace(one, spec=storageless(one.spec)) for one in records]
    identities = [identity_of(record.spec) for record in records]
    found = merge_records(records, identities, name, by=CARRIED)
    trusted = has_trust(
        studies[0].storage, studies[0].name
    )  # the new study runs the first one's spec
    restore(found.record, studies[0].storage, trusted=trusted)
    return {
        "study": name,
        "trials": len(found.record.trials),
        "shared": found.shared,
        "unlike": found.unlike,
    }
