"""Metrics of transformers from which blocks, heads or other parts were removed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from dse.core.metric import Metric
from dse.core.values import Floats, Value
from dse.errors import PluginError, nearest
from dse.protocols import Evaluator
from dse_evaluators.formats.arrays import Single
from dse_evaluators.one_by_one import Found
from dse_evaluators.workloads.models import MODELS, ModelRef, model_of
from dse_evaluators.workloads.on_test_split import OnTestSplit
from dse_evaluators.workloads.resampling import RESAMPLES
from dse_evaluators.workloads.workload import Split, check_split

MEASURES: Mapping[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric(name="deviation", goal="minimize"),
        Metric(name="size", unit="B", goal="minimize"),
        Metric(name="computation", goal="minimize"),
    )
}
"""Metrics of a cut built-in model.

``computation`` is the multiplications per character, as a fraction of the uncut model's.
"""

OWN_MEASURES: Mapping[str, Metric] = {
    **{name: MEASURES[name] for name in ("deviation", "size")},
    "kept_weights": Metric(name="kept_weights", goal="minimize"),
}
"""Metrics of a cut model of the user; ``kept_weights`` is the fraction of its parameters left."""


def metrics_of(model: ModelRef, split: str) -> dict[str, Metric]:
    """Return the metric definitions of a model with layers removed, by name.

    Raises:
        PluginError: the model or the split is unknown, or the model has no transformer blocks.
    """
    check_split(split)
    known = model_of(model)
    if not isinstance(model, str):
        return {**known.metrics, **OWN_MEASURES}
    if not depth_of(model):
        valid = [name for name in MODELS if depth_of(name)]
        raise PluginError(f"{model} has no blocks to cut", hint=nearest(model, valid))
    return {**known.metrics, **MEASURES}


def depth_of(model: str) -> int:
    """Return the number of transformer blocks of a model that can be removed; 0 for others.

    Raises:
        PluginError: the model is unknown.
    """
    layers = [name.split(".") for name in model_of(model).layers]
    return len({parts[1] for parts in layers if parts[0] == "blocks"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedModel:
    """Outputs of a changed model on a split, and its metrics other than the quality, by name."""

    outputs: Single  # (n, k)
    costs: Mapping[str, float]


RunDesign = Callable[[Mapping[str, Value]], ChangedModel]
"""Function that changes a model by a design, and runs it on the split of its evaluator."""


def measure_changed(model: ModelRef, changed: ChangedModel, split: Split) -> dict[str, float]:
    """Return the quality of a changed model, and its other metrics.

    Raises:
        EvaluationError: an output is infinite or not a number.
    """
    # Imported here: it takes seconds, and checking a study does not need it.
    from dse_evaluators.compression import other_parameters

    return {**other_parameters.judge_outputs(model, changed.outputs, split), **changed.costs}


def evaluator_on_test_split(evaluator: Evaluator, model: ModelRef, run: RunDesign) -> Evaluator:
    """Return an evaluator whose quality metrics have resamples of the test split.

    Args:
        evaluator: the evaluator with the option ``split: test``.
        model: its model.
        run: changes the model by a design, and runs it on the split ``test``.
    """
    return OnTestSplit(
        evaluator=evaluator,
        measure=_MeasureResampled(model=model, run=run),
        resampled=sorted(model_of(model).metrics),
        count=RESAMPLES,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _MeasureResampled:
    """Measurement of a design on the split ``test``, with resamples; it can be pickled."""

    model: ModelRef
    run: RunDesign

    def __call__(self, design: Mapping[str, Value]) -> tuple[Found, Mapping[str, Floats]]:
        # Imported here: it takes seconds, and checking a study does not need it.
        from dse_evaluators.compression import other_parameters

        changed = self.run(design)
        resamples = other_parameters.resample_changed(self.model, changed, "test")
        return Found(values=measure_changed(self.model, changed, "test")), resamples
