"""The evaluator ``clusters.layer-streaming``: layers streamed through a window on the GPU."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from dse.core.metric import Metric, Metrics
from dse.core.values import Floats
from dse_evaluators.clusters.offload.rooms import first_broken
from dse_evaluators.clusters.rules import Rule
from dse_evaluators.declared_evaluator import DeclaredEvaluator
from dse_evaluators.reading_table import NumberInput, Reading

_METRICS = (
    Metric(name="pass_time", unit="s", goal="minimize"),
    Metric(name="compute_time", unit="s", part_of="pass_time"),
    Metric(name="transfer_time", unit="s", part_of="pass_time"),
    Metric(name="slowdown", goal="minimize"),
    Metric(name="gpu_memory", unit="B", goal="minimize"),
    Metric(name="layers_memory", unit="B", part_of="gpu_memory"),
    Metric(name="fixed_memory", unit="B", part_of="gpu_memory"),
    Metric(name="saved", goal="maximize"),
    Metric(name="wire_traffic", unit="B", goal="minimize"),
    Metric(name="bottleneck", words=("compute", "transfer")),
)
_READINGS: Mapping[str, Reading] = {
    "layers": NumberInput(1, 1e6, whole=True),
    "resident": NumberInput(1, 1e6, whole=True),
    "moved": NumberInput(1, 1e6, default=1.0, whole=True),
    "layer_size": NumberInput(0, 1e18, "B"),
    "layer_time": NumberInput(1e-12, 1e9, "s"),
    "fixed": NumberInput(0, 1e18, "B", default=0.0),
    "pcie_bandwidth": NumberInput(1, 1e15, "B/s", default=25e9),
    "transfer_latency": NumberInput(0, 1e6, "s", default=20e-6),
}


class LayerStreaming(DeclaredEvaluator, reads=_READINGS, provides=_METRICS, version="1"):
    """Time and memory of repeated passes over a model with a window of layers on the GPU.

    The GPU holds ``resident`` layers. As soon as ``moved`` of them have been computed, they are
    replaced by the next ``moved`` layers, which are transferred in one piece while the others
    compute. If all layers are resident, nothing moves. ``saved`` is the saved share of the memory
    for all layers, ``slowdown`` the time divided by the time with all layers resident.

    Inputs:
        layer_time: computation of one layer in a pass.
        fixed: memory of embeddings, caches and activations.
        transfer_latency: latency of the transfer of each piece.

    Limits:
        Not modelled: the first window of the first pass, layers that differ.

    Error:
        Agrees with a layer-by-layer simulation of the windows in the steady state. No measurement
        was available.

    Example:
        options: {layers: 32, layer_size: 400 MB, layer_time: 10 ms}
        parameters: {resident: [8, 16, 32], moved: [1, 2]}

    Source:
        Abbasi, Lim: Superpipeline: A Universal Approach for Reducing GPU Memory Usage in Large
        Models, 2024, for the two parameters; the steady state is derived here.
    """

    layers: float | None = None
    resident: float | None = None
    moved: float | None = None
    layer_size: float | str | None = None
    layer_time: float | str | None = None
    fixed: float | str | None = None
    pcie_bandwidth: float | str | None = None
    transfer_latency: float | str | None = None

    def compute(self, inputs: Mapping[str, Floats]) -> Metrics:
        """Return time and memory of n designs, each a window of layers on the GPU."""
        layers, resident = inputs["layers"], inputs["resident"]
        streamed = resident < layers
        compute_s = layers * inputs["layer_time"]
        piece_s = (
            inputs["transfer_latency"]
            + inputs["moved"] * inputs["layer_size"] / inputs["pcie_bandwidth"]
        )
        line_s = (
            layers
            / inputs["moved"]
            * period_s(inputs["layer_time"], piece_s, resident, inputs["moved"])
        )
        waits_s = np.where(streamed, np.maximum(line_s - compute_s, 0.0), 0.0)
        held = resident * inputs["layer_size"]
        total = held + inputs["fixed"]
        whole = layers * inputs["layer_size"] + inputs["fixed"]
        return Metrics(
            columns={
                "pass_time": compute_s + waits_s,
                "compute_time": compute_s,
                "transfer_time": waits_s,
                "slowdown": (compute_s + waits_s) / compute_s,
                "gpu_memory": total,
                "layers_memory": held,
                "fixed_memory": inputs["fixed"],
                "saved": 1.0 - total / np.where(whole > 0.0, whole, 1.0),
                "wire_traffic": np.where(streamed, layers * inputs["layer_size"], 0.0),
                "bottleneck": (waits_s > compute_s).astype(np.float64),
            },
            failures=first_broken(_rules(inputs), len(layers)),
        )


def period_s(layer_s: Floats, piece_s: Floats, resident: Floats, moved: Floats) -> Floats:
    """Return the steady-state seconds to transfer and compute ``moved`` layers, (n,).

    ``piece_s`` is the time to transfer these layers to the GPU. During the transfer up to ``moved``
    of the other resident layers compute; if there are fewer, the remaining ones compute afterwards,
    without overlap.
    """
    beside = np.minimum(resident - moved, moved)
    return np.asarray(np.maximum(piece_s, beside * layer_s) + (moved - beside) * layer_s)


def _rules(inputs: Mapping[str, Floats]) -> Iterator[Rule]:
    few = "{has:g} layers %s, but there are {needs:g}: {short:g} too many"
    yield Rule(
        inputs["resident"] > inputs["layers"],
        few % "on the GPU at once",
        inputs["resident"],
        inputs["layers"],
    )
    yield Rule(
        inputs["moved"] > inputs["resident"],
        few.replace("there are", "the GPU holds") % "come at once",
        inputs["moved"],
        inputs["resident"],
    )
