"""Errors of the closed form of serving on measured services, by kind of model, device, format."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import cache
from pathlib import Path

from dse.core.batch import Batch
from dse.core.values import Mask
from dse.protocols import ModelError
from dse_evaluators.accelerators.devices.error_table import ErrorTable, extrapolate, state_errors
from dse_evaluators.clusters.serving.engine import PLAIN
from dse_evaluators.clusters.serving.run import ServingScenario
from dse_evaluators.clusters.serving.serving_plan import SPELLINGS
from dse_evaluators.workloads.transformer_configs import Transformer

MEASURED = ("tpot", "throughput", "device_throughput", "cost_per_token")
"""Metrics whose error is that of the time of a token, which was measured."""

EXACT = ("devices", "bottleneck", "extrapolated")


def service_errors(
    provided: Collection[str],
    batch: Batch,
    services: Mapping[str, ServingScenario],
    outside: Mask,
) -> dict[str, list[ModelError]]:
    """Return the model errors of n serving plans, by metric.

    Args:
        provided: names of the metrics.
        batch: designs with their ``weight_format``, and ``device`` if there are several services.
        services: the served model and its device, by name of the device.
        outside: whether a plan has a feature that no measured service had, (n,).
    """
    names = (
        batch.get("device", "").tolist()
        if len(services) > 1
        else [next(iter(services))] * len(batch)
    )
    formats = [SPELLINGS[text] for text in batch.get("weight_format", PLAIN).tolist()]
    errors = [
        extrapolate(_error(services[name], form), bool(beyond))
        for name, form, beyond in zip(names, formats, outside.tolist(), strict=True)
    ]
    return state_errors(provided, errors, MEASURED, EXACT)


def kind_of(model: Transformer) -> str:
    """Return the kind of a model: ``dense``, with ``experts``, or layers of several ``kinds``."""
    if not model.is_plain:
        return "kinds"
    return "experts" if model.experts > 1 else "dense"


def _error(service: ServingScenario, number_format: str) -> ModelError:
    device = service.device.name
    found = _table().nearest(kind_of(service.model), device, number_format)
    return found._replace(shares=f"{service.model.name} {device} {number_format}")


@cache
def _table() -> ErrorTable:
    return ErrorTable.read(Path(__file__).with_name("model_errors.csv"))
