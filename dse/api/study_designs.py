"""Designs that the user of a study in Python supplies: to evaluate, predict, attach or add."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dse.api.tell import MetricValues, Reason
    from dse.core.trial import Trial
    from dse.core.values import Value
    from dse.services.studies.predict import PredictedMetric
    from dse.study.study_engine import StudyEngine


class StudyDesigns:
    """Methods of :class:`~dse.api.study.Study` for designs that the user chose."""

    engine: StudyEngine

    def evaluate(self, *designs: Mapping[str, Value]) -> list[Trial]:
        """Evaluate designs with all evaluators in this process; return unstored trials.

        Measurements that the study already has are reused.

        Example:
            ``study.evaluate({"tile": 64, "stages": 2})[0].metrics``

        Args:
            designs: legal designs, each as values by parameter; quantities may be strings with a
                unit.

        Raises:
            DesignError: a design is not legal.
            StudyError: an evaluator cannot run here, or has changed since the study was created.
        """
        from dse.schema.study.designs import design_of
        from dse.services.studies.design_evaluation import evaluate_designs

        return evaluate_designs(
            self.engine, [design_of(one, self.engine.problem.space) for one in designs]
        )

    def predict(self, *designs: Mapping[str, Value]) -> list[dict[str, PredictedMetric]]:
        """Predict the metrics of designs by the optimizer's surrogate, fitted to the record.

        The prediction of a measured metric is its posterior mean with a standard error. A modelled
        metric is computed, with standard error 0.

        Example:
            ``study.predict({"tile": 64, "stages": 2})[0]["kernel.time"].mean``

        Args:
            designs: legal designs, each as values by parameter; quantities may be strings with a
                unit.

        Returns:
            For each design its predictions by metric, in the metric's unit.

        Raises:
            DesignError: a design is not legal.
            StudyError: the optimizer has no surrogate, too few trials have metrics, or a model
                cannot run here.
        """
        from dse.schema.study.designs import design_of
        from dse.services.studies.predict import predict_designs

        return predict_designs(
            self.engine, [design_of(one, self.engine.problem.space) for one in designs]
        )

    def attach(
        self,
        design: Mapping[str, Value],
        metrics: MetricValues | None = None,
        *,
        failed: Reason | None = None,
        infeasible: Reason | None = None,
        source: str = "a Python program",
    ) -> Trial:
        """Store known metrics of a design as a finished trial, from which optimizers learn.

        The trial does not count towards a budget. ``dse verify`` lists it as attached, because no
        optimizer proposed it. Modelled metrics are computed.

        Example:
            ``study.attach({"tile": 64, "stages": 2}, {"time": 3.1}, source="lab notebook, May")``

        Args:
            design: values by parameter; quantities may be strings with a unit.
            metrics: all measured metrics, by name (``evaluator.metric``, or ``metric`` alone), in
                the metric's unit; each a number or ``(value, standard error)``.
            failed: instead of metrics, why the measurement failed: a string or the exception.
            infeasible: instead of metrics, why the design cannot exist: a string or the exception.
            source: where the result is from, for the record.

        Returns:
            The trial as it is stored.

        Raises:
            DesignError: the design is not legal.
            SpecError: a metric is unknown, a value is not finite, or not exactly one of
                ``metrics``, ``failed`` and ``infeasible`` is given.
            StudyError: a trial of this design exists, a measured metric is missing, or the study
                differs from its stored definition.
        """
        from dse.api.study_attach import attach_result
        from dse.api.tell import ReportedResult

        return attach_result(
            self.engine, design, ReportedResult.of(metrics, failed, infeasible), source
        )

    def add(self, design: Mapping[str, Value]) -> int:
        """Add a user-chosen design as a pending trial, which the next run evaluates first.

        Example:
            ``study.add({"tile": 64, "stages": 2})``

        Args:
            design: values by parameter; quantities may be strings with a unit.

        Returns:
            The number of the trial.

        Raises:
            DesignError: the design is not legal.
            StudyError: a trial of this design exists, or the study differs from its stored
                definition.
        """
        from dse.schema.study.designs import design_of
        from dse.services.studies.add_design import add_pending_design

        return add_pending_design(
            self.engine, design_of(design, self.engine.problem.space), self.engine.trials
        )
