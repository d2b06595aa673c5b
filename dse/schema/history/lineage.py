"""Matching of a new study's evaluators, metrics and parameters with an earlier study's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dse.core.design import Design
from dse.core.metric import Metric
from dse.core.parameter import Real
from dse.core.problem import Problem
from dse.core.space import DesignSpace
from dse.core.trial import Trial
from dse.core.values import Value
from dse.errors import DesignError
from dse.evaluation.bound_evaluator import Bound
from dse.evaluation.pipeline import Pipeline
from dse.protocols import weights_trained_for
from dse.schema.study.plan import Plan
from dse.units import units

_SAME = ("use", "options", "version")


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyLineage:
    """Problem, pipeline and evaluators of a study, for comparison with those of another study.

    ``evaluators`` describes each evaluator by its label: plug-in, options, version and inputs.
    ``weights`` has the hashes of the weights that machines trained for the study, by model.
    """

    problem: Problem
    pipeline: Pipeline
    evaluators: Mapping[str, Mapping[str, Any]]
    weights: Mapping[str, str] = field(default_factory=dict)

    @staticmethod
    def of(
        plan: Plan, identity: Mapping[str, Any], weights: Mapping[str, str] | None = None
    ) -> StudyLineage:
        """Return the problem, pipeline and evaluators of a study's plan.

        ``identity`` is the study's identity (what must not change later) as stored at its start.
        """
        return StudyLineage(
            problem=plan.problem,
            pipeline=plan.pipeline,
            evaluators=identity["evaluators"],
            weights=weights or {},
        )


@dataclass(frozen=True, slots=True)
class Same:
    """Evaluator that two studies share: equal plug-in, options, version and inputs.

    ``metrics`` and ``parameters`` map the evaluator's names in the new study to those in the
    earlier one.
    """

    metrics: Mapping[str, str]
    parameters: Mapping[str, str]

    def renamed(self, numbers: Mapping[str, float]) -> dict[str, float]:
        """Return an earlier trial's metrics from a shared evaluator, by their new names."""
        return {new: numbers[old] for new, old in self.metrics.items() if old in numbers}

    def read(self, trial: Trial, space: DesignSpace) -> Design:
        """Return the parameter values that the evaluator read in an earlier trial.

        The values are keyed by the parameters' names in the new study.
        """
        return Design(
            {
                new: normalize_value(trial.design[old], new, space)
                for new, old in self.parameters.items()
                if old in trial.design
            }
        )


class Lineage:
    """Comparison of the evaluators of a new study with those of an earlier one."""

    def __init__(self, new: StudyLineage, old: StudyLineage) -> None:
        self._new, self._old = new, old
        self._found: dict[str, Same] = {}
        for bound in new.pipeline.bound:  # in topological order
            same = self._same(bound)
            if same is not None:
                self._found[bound.label] = same

    @property
    def found(self) -> Mapping[str, Same]:
        """Evaluators that the two studies have in common, by label in the new study.

        An evaluator is common if its plug-in, options, version and inputs are the same in both, and
        so are the weights that this machine trains for it.
        """
        return self._found

    def _same(self, bound: Bound) -> Same | None:
        own = self._new.evaluators[bound.label]
        others = sorted(self._old.pipeline.bound, key=lambda other: other.label != bound.label)
        for other in others:
            known = self._old.evaluators.get(other.label, {})
            alike = all(own[part] == known.get(part) for part in _SAME)
            if alike and own["reads"].keys() == known["reads"].keys() and self._has_weights(bound):
                parameters = self._parameters(own["reads"], known["reads"])
                if parameters is not None and bound.evaluator.provides == other.evaluator.provides:
                    names = bound.evaluator.provides
                    metrics = {bound.metric(name): other.metric(name) for name in names}
                    return Same(metrics, parameters)
        return None

    def _has_weights(self, bound: Bound) -> bool:
        """Return whether this machine trains an evaluator's models to the same weights.

        The weights are compared with those of the earlier study by their hashes. The result is true
        if that study recorded no weights.
        """
        recorded = self._old.weights
        if not recorded:
            return True
        here = weights_trained_for(bound.evaluator)
        return all(recorded.get(model, hashed) == hashed for model, hashed in here.items())

    def _parameters(self, new: Mapping[str, str], old: Mapping[str, str]) -> dict[str, str] | None:
        """Map an evaluator's parameters from their names in the new study to the earlier ones.

        Inputs that are metrics are followed to the parameters of the evaluators that compute them.
        The result is ``None`` if an input is a parameter in one study and a metric in the other, or
        the metric of an evaluator that the studies do not share.
        """
        found: dict[str, str] = {}
        for own, name in new.items():
            if (name in self._new.problem.sources) != (old[own] in self._old.problem.sources):
                return None
            if name not in self._new.problem.sources:
                found[name] = old[own]
                continue
            behind = [s for s in self._found.values() if s.metrics.get(name) == old[own]]
            if not behind:
                return None
            found |= behind[0].parameters
        return found


def normalize_value(value: Value, name: str, space: DesignSpace) -> Value:
    """Return a value as the parameter's type: 16.0 as 16 for an integer parameter."""
    parameter = space.by_name[name]
    if isinstance(parameter, Real):
        number = isinstance(value, int | float) and not isinstance(value, bool)
        return float(value) if number else value
    if value not in parameter:
        return value
    truth = isinstance(value, bool)
    return next(v for v in parameter.values if v == value and isinstance(v, bool) == truth)


def corresponding(name: str, metric: Metric, others: Mapping[str, Metric]) -> str | None:
    """Return the earlier study's metric that corresponds to a metric of the new study.

    This is the metric of the same name, else the only one with the same part after the last dot.
    Metrics whose unit has another dimension are ignored; ``None`` if no metric matches.
    """
    fits = [o for o, found in others.items() if units.same_dimension(found.unit, metric.unit)]
    if name in fits:
        return name
    alike = [other for other in fits if _last(other) == _last(name)]
    return alike[0] if len(alike) == 1 else None


def legal_design(values: Mapping[str, Value], space: DesignSpace) -> Design | None:
    """Return the design with these values; ``None`` if it is not feasible in the space."""
    try:
        space.check(values)
    except DesignError:
        return None
    return space.batch([values]).design(0)


def measured_evaluators(pipeline: Pipeline) -> Sequence[Bound]:
    """Return the evaluators that measure, not model, their metrics."""
    return [bound for bound in pipeline.bound if bound.evaluator.kind == "measured"]


def _last(metric: str) -> str:
    return metric.rpartition(".")[2].partition("@")[0]
