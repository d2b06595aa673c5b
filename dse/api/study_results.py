"""Results of a study in Python: effects, report, record and data frames."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dse.analysis.effects import Effects
    from dse.analysis.judged_front import JudgedFront
    from dse.api.record import StudyRecord
    from dse.core.problem import Problem
    from dse.core.recorded_gap import RecordedGap
    from dse.core.trial import Trial
    from dse.core.trials import Trials
    from dse.study import study_engine as engine


class StudyResults:
    """Methods of :class:`~dse.api.study.Study` that read its results.

    ``engine`` is the stored study.
    """

    engine: engine.StudyEngine

    @property
    def name(self) -> str:
        """Name of the study."""
        return self.engine.name

    @property
    def problem(self) -> Problem:
        """Problem that optimizers solve: space, objectives, limits and metrics."""
        return self.engine.problem

    @property
    def trials(self) -> Trials:
        """Trials by number: designs, states, metrics, standard errors and reasons of failures."""
        return self.engine.trials

    @property
    def attributes(self) -> dict[str, Any]:
        """Attributes that users have given the study, by name; see :meth:`set_attribute`."""
        from dse.core.attributes import Attributes

        return dict(Attributes.of(self.engine.events).study)

    def trial_attributes(self, trial: Trial | int) -> dict[str, Any]:
        """Return the attributes that users have given a trial, by name.

        Example:
            ``study.trial_attributes(3)["operator"]``

        Args:
            trial: the trial, or its number.

        Raises:
            SpecError: the argument is neither a trial nor an integer.
        """
        from dse.api.tell import number_of
        from dse.core.attributes import Attributes

        return dict(Attributes.of(self.engine.events).trials.get(number_of(trial), {}))

    def set_attribute(self, name: str, value: Any, *, trial: Trial | int | None = None) -> None:
        """Store a JSON value under a name, for the study or for one of its trials.

        Attributes are notes: optimizers do not read them. Exported files hold them, and ``dse
        status`` shows them.

        Example:
            ``study.set_attribute("operator", "night shift", trial=3)``

        Args:
            name: the attribute's name; a later value of the name replaces the earlier one.
            value: a JSON value: a finite number, string, boolean, or list or mapping of these;
                ``None`` removes the attribute.
            trial: the trial, or its number; default: the attribute belongs to the study.

        Raises:
            SpecError: the name or the value is not valid.
            StudyError: there is no such trial.
        """
        from dse.api.tell import number_of
        from dse.core.attributes import attribute_event
        from dse.errors import StudyError

        number, trials = None, self.trials
        if trial is not None:
            number = number_of(trial)
            if not 0 <= number < len(trials):
                raise StudyError(
                    f"there is no trial {number} in the study {self.engine.name!r}",
                    hint=f"it has {len(trials)} trials, numbered from 0",
                )
        finished = int(trials.over.sum())
        event = attribute_event(name, value, trial=number, finished=finished)
        self.engine.storage.record(self.engine.name, [event])

    def judge(self, *, again: bool = False) -> JudgedFront | None:
        """Measure the front on the test split of the evaluators; return it with standard errors.

        A run does this at its end, unless the study has ``judge: none``. Optimizers never receive
        these results; see :attr:`Front.judged`.

        Example:
            ``study.judge().by_trial[3].values``

        Args:
            again: also measure the designs that already have such a result.

        Returns:
            The front on the test split; ``None`` if the front is empty.

        Raises:
            StudyError: no evaluator has a test split, or an evaluator cannot run here.
        """
        from dse.api.front import front_of

        self.engine.judge(again=again)
        return front_of(self.engine).judged

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
        from dse.services.studies.results_json import study_effects

        return study_effects(self.engine, metrics)

    def gap(self, *, confidence: str | float | None = None) -> RecordedGap:
        """Estimate the gap: the share of the hypervolume that the front may still miss.

        The gap is estimated from all finished trials and not recorded; the study's budget need not
        state one. ``share`` is the gap. ``found`` is the hypervolume of the front. ``optimistic``
        is the hypervolume if every other design also reaches the optimistic end of its prediction
        band. Both are shares of the volume between reference point and ideal point.

        Example:
            ``study.gap(confidence="95 %").share``

        Args:
            confidence: probability with which the gap is an upper bound, from 50 % to 99 %; by
                default that of the budget, or 90 %.

        Raises:
            SpecError: the confidence is invalid, or all metrics are modelled over a space that
                cannot be enumerated.
            StudyError: there are too few trials, or a model cannot run here.
        """
        from dse.services.studies.gap_estimation import estimate_gap

        return estimate_gap(self.engine, confidence)

    def report(self, file: str | Path) -> Path:
        """Write the study as one self-contained HTML page; return its path.

        Raises:
            StorageError: the file cannot be written.
        """
        from dse.report.json.atomic_file import write_whole
        from dse.services.studies.html_report import report_text

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
