"""Metrics of a model that was cut, besides its workload's own quality."""

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
"""``computation``: multiplications for a character, as a share of the whole model's."""


def metrics_of(model: str, split: str) -> dict[str, Metric]:
    """Return all metrics of a model on a split.

    Raises:
        PluginError: there is no such model or split.
    """
    check_split(split)
    known = model_of(model)
    if not depth_of(model):
        valid = [name for name in MODELS if depth_of(name)]
        raise PluginError(f"{model} has no blocks to cut", hint=nearest(model, valid))
    return {**known.metrics, **MEASURES}


def depth_of(model: str) -> int:
    """Return how many blocks a transformer has that the evaluators can cut, else 0.

    Raises:
        PluginError: there is no such model.
    """
    layers = [name.split(".") for name in model_of(model).layers]
    return len({parts[1] for parts in layers if parts[0] == "blocks"})
