"""The evaluator ``clusters.offload-bandwidth``: size of model states, bandwidth to move them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from dse.core.metric import Metric, Metrics
from dse.core.values import Floats
from dse_evaluators.clusters.offload.bandwidth_law import (
    KINDS,
    STATE_BYTES,
    Need,
    bandwidth_for,
    efficiency,
)
from dse_evaluators.declared_evaluator import DeclaredEvaluator
from dse_evaluators.reading_table import NumberInput, Reading

_PARTS = ("compute", *KINDS)
_METRICS = (
    Metric(name="parameters", goal="maximize"),
    Metric(name="states", unit="B", goal="minimize"),
    *(Metric(name=f"{part}_states", unit="B", part_of="states") for part in STATE_BYTES),
    Metric(name="checkpoints", unit="B", goal="minimize"),
    Metric(name="layer_memory", unit="B", goal="minimize"),
    Metric(name="working_memory", unit="B", goal="minimize"),
    *(Metric(name=f"{kind}_intensity", unit="FLOP/B", goal="maximize") for kind in KINDS),
    *(Metric(name=f"{kind}_efficiency", goal="maximize") for kind in KINDS),
    *(Metric(name=f"{kind}_needs", unit="B/s", goal="minimize") for kind in KINDS),
    Metric(name="step_time", unit="s", goal="minimize"),
    *(Metric(name=f"{part}_time", unit="s", part_of="step_time") for part in _PARTS),
    Metric(name="efficiency", goal="maximize"),
    Metric(name="bottleneck", words=_PARTS),
)
_SIZES: Mapping[str, Reading] = {
    "layers": NumberInput(1, 1e6, whole=True),
    "hidden": NumberInput(1, 1e7, whole=True),
    "heads": NumberInput(1, 1e6, default=16.0, whole=True),
    "batch": NumberInput(1, 1e7, default=1.0, whole=True),
    "sequence": NumberInput(1, 1e8, default=1024.0, whole=True),
    "checkpoint_interval": NumberInput(1, 1e5, default=1.0, whole=True),
}
_RATES: Mapping[str, Reading] = {
    "rate": NumberInput(1, 1e20, "FLOP/s", default=70e12),  # measured on a V100 in the paper
    "target": NumberInput(1e-6, 1.0 - 1e-6, default=0.5),
    "weights_bandwidth": NumberInput(1, 1e18, "B/s", default=70e9),
    "optimizer_bandwidth": NumberInput(1, 1e18, "B/s", default=1.5e12),
    "activations_bandwidth": NumberInput(1, 1e18, "B/s", default=2e9),
}


class OffloadBandwidth(
    DeclaredEvaluator, reads={**_SIZES, **_RATES}, provides=_METRICS, version="1"
):
    """Closed forms of ZeRO-Infinity: memory of model states, bandwidth of their traffic.

    Efficiency is the share of a step's time spent computing. Each ``..._efficiency`` counts one
    kind of traffic alone (weights, optimizer or activations), ``efficiency`` and ``step_time`` all
    three, one after another. ``..._needs`` is the bandwidth per GPU at which one kind alone reaches
    the efficiency ``target``.

    Inputs:
        batch: sequences of one GPU.
        sequence: tokens.
        checkpoint_interval: layers.
        rate: rate of GEMMs.

    Limits:
        Not modelled: embeddings, overlap, placement of data; ``clusters.offload`` models those.

    Error:
        Agrees with 15 figures of the paper's table to the printed digit; its bandwidths are rounded
        up by 2, 22 and 40 %.

    Example:
        options: {sequence: 1024}
        parameters: {layers: [80, 128], hidden: [10240, 25600], batch: [1, 4]}

    Source:
        Rajbhandari et al.: ZeRO-Infinity: Breaking the GPU Memory Wall for Extreme Scale Deep
        Learning, SC 2021.
    """

    layers: float | None = None
    hidden: float | None = None
    heads: float | None = None
    batch: float | None = None
    sequence: float | None = None
    checkpoint_interval: float | None = None
    rate: float | str | None = None
    target: float | None = None
    weights_bandwidth: float | str | None = None
    optimizer_bandwidth: float | str | None = None
    activations_bandwidth: float | str | None = None

    def compute(self, inputs: Mapping[str, Floats]) -> Metrics:
        """Return memory, bandwidth and efficiency of n models, each trained on one GPU."""
        need = Need(**{name: inputs[name] for name in _SIZES})
        states = {f"{part}_states": size * need.parameters for part, size in STATE_BYTES.items()}
        weights, gradients, optimizer = states.values()
        return Metrics(
            columns={
                "parameters": need.parameters,
                "states": weights + gradients + optimizer,
                **states,
                "checkpoints": need.checkpoints,
                "layer_memory": need.largest_product,
                "working_memory": need.working,
                **_alone(need, inputs),
                **_together(need, inputs),
            }
        )


def _alone(need: Need, inputs: Mapping[str, Floats]) -> dict[str, Floats]:
    found: dict[str, Floats] = {}
    for kind, intensity in need.intensities.items():
        found[f"{kind}_intensity"] = intensity
        found[f"{kind}_efficiency"] = efficiency(
            intensity, inputs[f"{kind}_bandwidth"], inputs["rate"]
        )
        found[f"{kind}_needs"] = bandwidth_for(inputs["target"], intensity, inputs["rate"])
    return found


def _together(need: Need, inputs: Mapping[str, Floats]) -> dict[str, Floats]:
    compute_s = need.flops / inputs["rate"]
    times = [compute_s] + [
        need.flops / intensity / inputs[f"{kind}_bandwidth"]
        for kind, intensity in need.intensities.items()
    ]
    total_s = times[0] + times[1] + times[2] + times[3]
    return {
        "step_time": total_s,
        **{f"{part}_time": seconds for part, seconds in zip(_PARTS, times, strict=True)},
        "efficiency": compute_s / total_s,
        "bottleneck": np.argmax(np.stack(times), axis=0).astype(np.float64),
    }
