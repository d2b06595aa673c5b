"""Errors of the training model on published runs, by kind of model, device and format."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import cache
from pathlib import Path

from dse.protocols import ModelError
from dse_evaluators.accelerators.devices.devices import Device
from dse_evaluators.accelerators.devices.error_table import ErrorTable, extrapolate, state_errors
from dse_evaluators.clusters.training.kernels import Chip
from dse_evaluators.workloads.transformer_configs import Transformer

MEASURED = (
    *("step_time", "throughput", "device_throughput", "utilization"),
    *("cost_per_token", "cost_to_train", "time_to_train"),
)
"""Metrics whose error is that of the time of a step, which was published."""

EXACT = ("devices", "bottleneck", "extrapolated")


def training_errors(
    provided: Collection[str],
    model: Transformer,
    device: Device,
    chips: Mapping[str, Chip],
    formats: Sequence[str],
) -> dict[str, list[ModelError]]:
    """Return the model errors of n training plans, by metric.

    Args:
        provided: names of the metrics.
        model: the trained model.
        device: the device.
        chips: GEMM rates of the device, by number format.
        formats: number format of each plan, (n,).
    """
    known = {name: _error(model, device, chips, name) for name in dict.fromkeys(formats)}
    return state_errors(provided, [known[name] for name in formats], MEASURED, EXACT)


def _error(
    model: Transformer, device: Device, chips: Mapping[str, Chip], number_format: str
) -> ModelError:
    has_experts = model.experts > 1
    found = _table().nearest("experts" if has_experts else "dense", device.name, number_format)
    found = found._replace(shares=f"{model.name} {device.name} {number_format}")
    if number_format not in chips or not chips[number_format].measured:
        return found._replace(origin="data sheet only")
    return extrapolate(found, has_experts or bool(device.calibrations))


@cache
def _table() -> ErrorTable:
    return ErrorTable.read(Path(__file__).with_name("model_errors.csv"))
