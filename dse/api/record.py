"""Record of a study: its progress, events, provenance and proof."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from dse.core.trial import Event
from dse.core.values import Value
from dse.errors import DseError
from dse.report.schemas.front import Front
from dse.report.schemas.study import CarriedOver, Status, Trusted
from dse.report.schemas.transfer import Exported
from dse.report.text.space_words import format_count
from dse.schema.study.designs import plain_values
from dse.schema.study.plan import plan_of
from dse.schema.yaml.files import resolve_path
from dse.services.studies.answer import answer_json
from dse.services.studies.claims import Judged, judged_claims
from dse.services.studies.status import status_json
from dse.services.studies.transfer import exported_to_optuna, write_study_export
from dse.services.studies.trust import trust_study
from dse.study import study as engine
from dse.study.migrate import migrate_stored_study
from dse.study.replay import Replay, ReplayResult
from dse.system.terminal_text import visible


class StudyRecord:
    """The record of a study, as the storage has it now; see ``study.record``."""

    def __init__(self, study: engine.StudyEngine) -> None:
        self._study = study

    @property
    def status(self) -> Status:
        """Status of the study, as ``dse status --format json`` prints it.

        Seconds are those of evaluation.
        """
        return status_json(self._study)

    @property
    def answer(self) -> Front:
        """The front with all that ``dse front --format json`` prints, in the study's units."""
        return answer_json(self._study)

    @property
    def events(self) -> list[Event]:
        """Events of the study besides its trials, oldest first."""
        return self._study.events

    @property
    def provenance(self) -> Mapping[str, str]:
        """The versions and the machine that the study was begun with."""
        return self._study.provenance

    @property
    def claims(self) -> list[Judged]:
        """The claims that the study states, held against the trials that it has."""
        return judged_claims(self._study)

    def trust(self) -> Trusted:
        """Let the study be run, if it was imported; what that starts is returned.

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
        """Prove that each design is what the optimizer asks, given what was known then.

        Args:
            on_progress: told how many asks of how many are replayed.
            sample: replay so many asks, spread evenly over the record; without, all of them.
            seed: of the sample.

        Returns:
            What was proved; ``proof.whole`` is true where nothing was left, ``proof.sound`` where
            nothing was found wrong.

        Raises:
            StudyError: it was begun with other evaluators, so that nothing can be proved.
            StorageError: the record is damaged.
        """
        return Replay(self._study, on_progress=on_progress, sample=sample, seed=seed).proof()

    def export(
        self, file: str | Path, *, name: str | None = None, with_machine: bool = False
    ) -> Exported:
        """Write the study as one file.

        Args:
            file: ``study.jsonl`` or ``study.parquet``, which can be imported again and gone on
                with; ``study.csv`` for a table of its trials.
            name: what it is called there.
            with_machine: with the names of hosts, users and folders as they are.

        Raises:
            StorageError: the file cannot be written, or has another ending.
        """
        return write_study_export(self._study, Path(file), name=name, with_machine=with_machine)

    def export_to_optuna(self, storage: str, *, name: str | None = None) -> Exported:
        """Write the study's finished trials for Optuna's dashboard.

        Args:
            storage: ``sqlite:///optuna.db``, another URL, or the path of a journal.
            name: what it is called there.

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
        """Begin the study of a file with a changed space from the trials of this one.

        Trials that are still legal count as its own; the others are marked as outside, and
        surrogates learn from them. This study stays as it is.

        Args:
            file: the study file with the new space.
            to: the new study's name; the file's without, with the next free number if it is taken.
            settings: what the old trials had in parameters that only the new space has.

        Raises:
            StudyError: the evaluators are not those of the new one.
            SpecErrors: the file has mistakes.
        """
        path = resolve_path(str(file), Path.cwd() / "study.yaml")
        fixed = plain_values(settings or {}, plan_of(path).problem.space)
        storage = self._study.storage
        carried = migrate_stored_study(
            self._study.name, path, to=to, settings=fixed, storage=storage
        )
        told = carried.study.name
        return {"study": told, "inside": carried.inside, "outside": carried.outside}

    def delete(self) -> None:
        """Forget the study and all its trials; nothing can be asked of it any more."""
        self._study.storage.delete(self._study.name)

    def __repr__(self) -> str:
        try:
            trials, events = len(self._study.trials), len(self.events)
        except DseError as error:  # it was deleted, or its storage is away
            return f"<record of {self._study.name!r} that cannot be read: {visible(error.problem)}>"
        told = f"{format_count(trials, 'trial')}, {format_count(events, 'event')}"
        return f"<record of {self._study.name!r}: {told}>"
