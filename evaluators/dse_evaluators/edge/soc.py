"""Evaluator ``edge.soc``: a network on a system on chip, with its transfers and its software."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from dse.core.metric import Metric
from dse.core.values import Floats
from dse_evaluators.declared_evaluator import DeclaredEvaluator
from dse_evaluators.reading_table import NumberInput, Reading, one_of

_INTERFACES = ("dma", "acp")

_PARTS = ("accelerator", "transfer", "software")

_INPUTS: Mapping[str, Reading] = {
    "latency": NumberInput(1e-12, 1e6, "s"),
    "energy": NumberInput(0, 1e9, "J"),
    "transferred": NumberInput(0, 1e15, "B"),
    "software_time": NumberInput(0, 1e6, "s"),
    "accelerators": NumberInput(1, 1024, default=1, whole=True),
    "threads": NumberInput(1, 1024, default=1, whole=True),
    "interface": one_of(_INTERFACES, "dma"),
    "dma_bandwidth": NumberInput(1, 1e15, "B/s"),
    "acp_bandwidth": NumberInput(1, 1e15, "B/s"),
    "flush_bandwidth": NumberInput(1, 1e15, "B/s"),
    "accelerator_scaling": NumberInput(0, 1),
    "thread_scaling": NumberInput(0, 1),
    "core_power": NumberInput(0, 1e6, "W"),
    "transfer_energy": NumberInput(0, 1, "J/B"),
}

_METRICS = (
    Metric(name="total_latency", unit="s", goal="minimize"),
    Metric(name="accelerator_time", unit="s", goal="minimize", part_of="total_latency"),
    Metric(name="transfer_time", unit="s", goal="minimize", part_of="total_latency"),
    Metric(name="software_part", unit="s", goal="minimize", part_of="total_latency"),
    Metric(name="accelerator_share"),
    Metric(name="bottleneck", words=_PARTS),
    Metric(name="total_energy", unit="J", goal="minimize"),
    Metric(name="frames_per_second", unit="Hz", goal="maximize"),
)


class Soc(DeclaredEvaluator, reads=_INPUTS, provides=_METRICS, version="1"):
    """Latency and energy of a network on a system on chip around its accelerators.

    The time of a frame is the sum of the times of the accelerators, of the transfers of their
    operands and results, and of the software that prepares these. Over ``dma`` the caches are
    flushed first; over ``acp`` the accelerators read the caches coherently. More accelerators and
    threads shorten their part by their number and its scaling: n of them are 1 + (n - 1) x scaling
    times as fast as one.

    ``latency`` and ``energy`` are inputs for one accelerator: in a study they are the metrics of
    ``accelerators.systolic`` or of an evaluator of yours.

    Inputs:
        latency: time of one accelerator for a frame.
        energy: energy of the accelerator for a frame.
        transferred: bytes of operands and results of a frame between host and accelerator.
        software_time: time of one thread that prepares data and finalises layers.
        accelerators: number of accelerators that share the layers' tiles.
        threads: number of threads that share the software.
        interface: ``dma`` or ``acp`` (accelerator coherency port).
        dma_bandwidth: bandwidth of transfers by DMA.
        acp_bandwidth: bandwidth of coherent transfers.
        flush_bandwidth: bytes a second that are flushed from the caches before a transfer by DMA.
        accelerator_scaling: speed that each further accelerator adds, over the speed of the first.
        thread_scaling: speed that each further thread adds, over the speed of the first.
        core_power: power of a core at work.
        transfer_energy: energy of a transferred byte.

    Limits:
        The parts do not overlap, as for a single frame; contention for the memory is in the
        bandwidths and in the scalings, which are the user's. Idle power is left out.

    Error:
        Not validated: the published figures are of a cycle simulator, which was not run.

    Source:
        Xi et al.: SMAUG, 2020: the parts of a single frame's latency, and both interfaces.

    Example:
        options:
          latency: 10 ms
          energy: 5 mJ
          transferred: 6 MB
          software_time: 9 ms
          dma_bandwidth: 2 GB/s
          acp_bandwidth: 6 GB/s
          flush_bandwidth: 3 GB/s
          accelerator_scaling: 0.85
          thread_scaling: 0.75
          core_power: 0.5 W
          transfer_energy: 100 pJ/B
        parameters: {accelerators: [1, 8], threads: [1, 8], interface: [dma, acp]}

    Raises:
        SpecError: the value of an option is invalid.
    """

    latency: float | str | None = None
    energy: float | str | None = None
    transferred: float | str | None = None
    software_time: float | str | None = None
    accelerators: float | None = None
    threads: float | None = None
    interface: str | None = None
    dma_bandwidth: float | str | None = None
    acp_bandwidth: float | str | None = None
    flush_bandwidth: float | str | None = None
    accelerator_scaling: float | None = None
    thread_scaling: float | None = None
    core_power: float | str | None = None
    transfer_energy: float | str | None = None

    def compute(self, inputs: Mapping[str, Floats], /) -> Mapping[str, Floats]:
        """Return the metrics of n designs, each (n,)."""
        threads = _speed_up(inputs["threads"], inputs["thread_scaling"])
        accelerator_s = inputs["latency"] / _speed_up(
            inputs["accelerators"], inputs["accelerator_scaling"]
        )
        moved = inputs["transferred"]
        by_dma_s = moved / inputs["dma_bandwidth"] + moved / inputs["flush_bandwidth"]
        coherent = inputs["interface"] == _INTERFACES.index("acp")
        transfer_s = np.where(coherent, moved / inputs["acp_bandwidth"], by_dma_s)
        software_s = inputs["software_time"] / threads
        parts = np.stack([accelerator_s, transfer_s, software_s])  # (3, n)
        total_s = parts.sum(axis=0)
        cores_j = inputs["core_power"] * inputs["threads"] * software_s
        return {
            "total_latency": total_s,
            "accelerator_time": accelerator_s,
            "transfer_time": transfer_s,
            "software_part": software_s,
            "accelerator_share": accelerator_s / total_s,
            "bottleneck": parts.argmax(axis=0).astype(float),
            "total_energy": inputs["energy"] + moved * inputs["transfer_energy"] + cores_j,
            "frames_per_second": 1 / total_s,
        }


def _speed_up(count: Floats, scaling: Floats) -> Floats:
    return 1 + (count - 1) * scaling
