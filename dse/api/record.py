"""Stored record of a study: its status, events, provenance, and verification by replay."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from dse.core.trial import Event
from dse.core.values import Value
from dse.errors import DseError
from dse.report.schemas.front_schema import FrontFacts
from dse.report.schemas.study_schema import CarriedOver, Status, Trusted
from dse.report.schemas.transfer_schema import Exported
from dse.report.text.space_words import format_count
from dse.schema.study.designs import plain_values
from dse.schema.study.plan import plan_of
from dse.schema.yaml.files import resolve_path
from dse.services.studies.claim_evaluation import ClaimVerdict, judged_claims
from dse.services.studies.results_json import answer_json
from dse.services.studies.status import status_json
from dse.services.studies.study_transfer import exported_to_optuna, write_study_export
from dse.services.studies.trust_consent import trust_study
from dse.study import study_engine as engine
from dse.study.migrate import migrate_stored_study
from dse.study.replay import Replay, ReplayResult
from dse.system.terminal_text import visible


class StudyRecord:
    """Stored record of a study, read from the storage on each access; see ``study.record``."""

    def __init__(self, study: engine.StudyEngine) -> None:
        self._study = study

    @property
    def status(self) -> Status:
        """Status of the study, as ``dse status --format json`` prints it.

        Times are evaluation times in seconds.
        """
        return status_json(self._study)

    @property
    def answer(self) -> FrontFacts:
        """Pareto front as ``dse front --format json`` prints it, in the units of the study."""
        return answer_json(self._study)

    @property
    def events(self) -> list[Event]:
        """Events of the study, such as optimizer choices, fallbacks and proofs, oldest first."""
        return self._study.events

    @property
    def provenance(self) -> Mapping[str, str]:
        """Software versions and machine with which the study was created."""
        return self._study.provenance

    @property
    def claims(self) -> list[ClaimVerdict]:
        """Published results in the study file (claims), each compared with the study's value."""
        return judged_claims(self._study)

    def trust(self) -> Trusted:
        """Allow an imported study to run; return the programs that it would start.

        The result is a mapping, in which ``starts`` lists the programs and Python functions that
        running the study calls.

        Example:
            ``study.record.trust()["starts"]``
        """
        return trust_study(self._study.storage, self._study.name)

    def verify(
        self,
        *,
        on_progress: Callable[[int, int], None] = lambda *_: None,
        sample: int | None = None,
        seed: int = 0,
    ) -> ReplayResult:
        """Verify by replay that the optimizer proposes the recorded designs once more.

        Each call of the optimizer is repeated with the trials that it knew at that time.

        Args:
            on_progress: called with the number of asks (optimizer calls) replayed so far and the
                total number.
            sample: the number of asks to replay, spread evenly over the record; default: all.
            seed: the random seed of the sample.

        Returns:
            The result; ``proof.whole`` is true if all asks were replayed, ``proof.sound`` if no
            mismatch was found.

        Raises:
            StudyError: the study was created with other evaluators and cannot be replayed.
            StorageError: the record is damaged.
        """
        return Replay(self._study, on_progress=on_progress, sample=sample, seed=seed).proof()

    def export(
        self, file: str | Path, *, name: str | None = None, with_machine: bool = False
    ) -> Exported:
        """Write the study as one file.

        Args:
            file: ``study.jsonl`` or ``study.parquet``, which can be imported and continued;
                ``study.csv`` for a table of its trials.
            name: the study's name in the file; default: unchanged.
            with_machine: include the names of hosts, users and folders.

        Raises:
            StorageError: the file cannot be written, or has none of these suffixes.
        """
        return write_study_export(self._study, Path(file), name=name, with_machine=with_machine)

    def export_to_optuna(self, storage: str, *, name: str | None = None) -> Exported:
        """Write the study's finished trials to an Optuna storage, for Optuna's dashboard.

        Args:
            storage: ``sqlite:///optuna.db``, another URL, or the path of a journal.
            name: the study's name in that storage; default: unchanged.

        Raises:
            StorageError: the storage cannot be written.
            PluginError: Optuna is not installed.
        """
        return exported_to_optuna(self._study, storage, name=name)

    def migrate(
        self,
        file: str | Path,
        *,
        to: str | None = None,
        settings: Mapping[str, Value] | None = None,
    ) -> CarriedOver:
        """Create a study with a changed space that starts with the trials of this study.

        Trials that are legal in the new space count as trials of the new study; other trials are
        marked as outside the space and serve only to train surrogates. This study is not changed.

        Args:
            file: the study file with the new space.
            to: the new study's name; default: the file's, with the next free number if it exists.
            settings: values of the old trials for parameters that only the new space has.

        Raises:
            StudyError: the evaluators of the two studies differ.
            SpecErrors: the file has mistakes.
        """
        path = resolve_path(str(file), Path.cwd() / "study.yaml")
        fixed = plain_values(settings or {}, plan_of(path).problem.space)
        storage = self._study.storage
        carried = migrate_stored_study(
            self._study.name, path, to=to, settings=fixed, storage=storage
        )
        name = carried.study.name
        return {"study": name, "inside": carried.inside, "outside": carried.outside}

    def delete(self) -> None:
        """Delete the study and all its trials from the storage."""
        self._study.storage.delete(self._study.name)

    def __repr__(self) -> str:
        try:
            trials, events = len(self._study.trials), len(self.events)
        except DseError as error:  # it was deleted, or its storage is unavailable
            return f"<record of {self._study.name!r} that cannot be read: {visible(error.problem)}>"
        counts = f"{format_count(trials, 'trial')}, {format_count(events, 'event')}"
        return f"<record of {self._study.name!r}: {counts}>"
