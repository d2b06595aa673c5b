"""Metrics and options of evaluators that a study calls by their former names."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from dse.core.batch import Batch
from dse.core.metric import Metric, Metrics
from dse.errors import SpecError
from dse.protocols import (
    Evaluator,
    HasFormerMetrics,
    ModelError,
    StatesModelErrors,
    absent_metrics,
    find_test_evaluator,
    former_options,
    inputs_by_metric,
)
from dse.registry import load
from dse.schema.models import EvaluatorSpec
from dse.system.deprecation import UNTIL

_Held = TypeVar("_Held")


class FormerMetrics:
    """Evaluator wrapper that reports some metrics under their former names.

    The trials of a stored study have the former names. All other behaviour is that of the wrapped
    evaluator.

    Args:
        evaluator: the evaluator.
        former: the former name of each renamed metric, by its present name.
    """

    def __init__(self, evaluator: Evaluator, former: Mapping[str, str]) -> None:
        self.evaluator = evaluator
        self.former = dict(former)
        self.provides: Mapping[str, Metric] = {
            name: replace(metric, name=name)
            for name, metric in self._renamed(evaluator.provides).items()
        }
        self.reads_by_metric = self._renamed(inputs_by_metric(evaluator))
        self.absent_metrics = self._renamed(absent_metrics(evaluator))
        # A method that is None counts as absent: the wrapper can what the wrapped evaluator can.
        states = isinstance(evaluator, StatesModelErrors)
        self.model_errors = self._model_errors if states else None

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "evaluator":  # not yet set while it is unpickled
            raise AttributeError(name)
        return getattr(self.evaluator, name)

    def test_evaluator(self) -> Evaluator | None:
        """Return the test-split evaluator of the wrapped evaluator, with the same metric names.

        The result is ``None`` if the wrapped evaluator has no test split.
        """
        found = find_test_evaluator(self.evaluator)
        return None if found is None else FormerMetrics(found, self.former)

    def evaluate(self, batch: Batch) -> Metrics:
        found = self.evaluator.evaluate(batch)
        return replace(
            found,
            columns=self._renamed(found.columns),
            spread=self._renamed(found.spread),
            undefined=self._renamed(found.undefined),
        )

    def _model_errors(self, batch: Batch) -> Mapping[str, Sequence[ModelError]]:
        assert isinstance(self.evaluator, StatesModelErrors)
        return self._renamed(self.evaluator.model_errors(batch))

    def _renamed(self, by_metric: Mapping[str, _Held]) -> dict[str, _Held]:
        return {self.former.get(name, name): held for name, held in by_metric.items()}


def keep_former_metrics(
    label: str, evaluator: Evaluator, study: Any
) -> tuple[Evaluator, dict[str, str]]:
    """Let an evaluator provide its metrics under former names if a study uses one of them.

    Args:
        label: the evaluator's name in the study.
        evaluator: the evaluator.
        study: the content of the study file.

    Returns:
        The evaluator, and the present name of each former name that the study uses: ``LABEL.NAME``.

    Raises:
        SpecError: the study uses a former and a present name of renamed metrics.
    """
    if not isinstance(evaluator, HasFormerMetrics):
        return evaluator, {}
    present = evaluator.former_metrics
    named = {name.partition("@")[0] for name in _metrics_named(label, study)}
    used = {former: present[former] for former in sorted(named & present.keys())}
    if not used:
        return evaluator, {}
    mixed = sorted(named & set(present.values()))
    if mixed:
        raise SpecError(
            f"{label}.{next(iter(used))} is the former name of a metric, and {label}.{mixed[0]} "
            "a present one",
            hint="use the present names: " + ", ".join(f"{label}.{n}" for n in used.values()),
        )
    former = {new: old for old, new in present.items() if new in evaluator.provides}
    names = {f"{label}.{old}": f"{label}.{new}" for old, new in used.items()}
    return FormerMetrics(evaluator, former), names


def former_options_in(spec: EvaluatorSpec) -> dict[str, str]:
    """Return the present name of each former name among the options that a study states."""
    former = former_options(load("evaluators", spec.use))
    return {old: new for old, new in former.items() if old in spec.options}


def rename_former_options(spec: EvaluatorSpec) -> dict[str, Any]:
    """Return the options that a study states for an evaluator, by their present names.

    Raises:
        SpecError: an option is stated under both of its names.
    """
    former = former_options_in(spec)
    for old, new in former.items():
        if new in spec.options:
            problem = f"{old!r} is the old name of {new!r}, which is here as well"
            raise SpecError(problem, hint="keep one of them")
    return {former.get(name, name): value for name, value in spec.options.items()}


def warn_of_former_names(place: str, names: Mapping[str, str]) -> None:
    """Warn that a study uses former names of metrics or options.

    Args:
        place: the evaluator's place in the study, ``file:line``.
        names: the present name of each former one.
    """
    for old, new in names.items():
        text = f"'{old}' is called '{new}' now; the old name is read until version {UNTIL}"
        warnings.warn(f"{place}: {text}", FutureWarning, stacklevel=2)


def _metrics_named(label: str, value: Any) -> Iterator[str]:
    """Yield the metrics of an evaluator that a study's texts, except its question, name."""
    if isinstance(value, str):
        yield from re.findall(rf"(?<![\w.]){re.escape(label)}\.(\w+)", value)
    elif isinstance(value, Mapping):
        for key, held in value.items():
            if key != "question":
                yield from _metrics_named(label, held)
    elif isinstance(value, list):
        for held in value:
            yield from _metrics_named(label, held)
