"""Results of a study in Python: effects, report, record and data frames."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dse.analysis.effects import Effects
    from dse.api.record import StudyRecord
    from dse.study import study as engine


class StudyResults:
    """Part of :class:`~dse.api.study.Study` that reads its results; ``engine`` is its study."""

    engine: engine.StudyEngine

    def effects(self, *metrics: str) -> list[Effects]:
        """Return main effects and interactions of parameters on metrics, as shares of variance.

        For a full factorial design this is an analysis of variance; for the trials of an optimizer
        it describes only the sampled region.

        Args:
            metrics: names of metrics or objectives; default: the objectives, and the metrics that
                limits and compound objectives read.

        Raises:
            StudyError: there is no such metric, or fewer than two trials have it.
        """
        from dse.services.studies.answer import study_effects

        return study_effects(self.engine, metrics)

    def report(self, file: str | Path) -> Path:
        """Write the study as one self-contained HTML page; return its path.

        Raises:
            StorageError: the file cannot be written.
        """
        from dse.report.json.atomic_file import write_whole
        from dse.services.studies.report import report_text

        write_whole(Path(file), report_text(self.engine))
        return Path(file)

    @property
    def record(self) -> StudyRecord:
        """Stored record of the study: status, events, provenance and verification.

        The record can be exported, migrated and deleted.
        """
        from dse.api.record import StudyRecord

        return StudyRecord(self.engine)

    def to_pandas(self) -> Any:  # pandas is an extra
        """Return a data frame with the state, parameters, metrics and spread of each trial.

        The spread of a metric is its standard error.

        Raises:
            PluginError: pandas is not installed.
        """
        from dse.interop.data_frames import to_pandas

        return to_pandas(self)

    def to_polars(self) -> Any:  # polars is an extra
        """Return a data frame with the state, parameters, metrics and spread of each trial.

        The spread of a metric is its standard error.

        Raises:
            PluginError: polars is not installed.
        """
        from dse.interop.data_frames import to_polars

        return to_polars(self)
