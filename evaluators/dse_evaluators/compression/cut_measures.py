"""Metrics of transformers from which blocks, heads or other parts were removed."""

from __future__ import annotations

from collections.abc import Mapping

from dse.core.metric import Metric
from dse.errors import PluginError, nearest
from dse_evaluators.workloads.models import MODELS, model_of
from dse_evaluators.workloads.workload import check_split

MEASURES: Mapping[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric(name="deviation", goal="minimize"),
        Metric(name="size", unit="B", goal="minimize"),
        Metric(name="computation", goal="minimize"),
    )
}
"""Metrics of a cut model.

``computation`` is the multiplications per character, as a fraction of the uncut model's.
"""


def metrics_of(model: str, split: str) -> dict[str, Metric]:
    """Return the metric definitions by name for versions of a model with parts removed.

    Raises:
        PluginError: the model or the split is unknown, or the model has no transformer blocks.
    """
    check_split(split)
    known = model_of(model)
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
