"""The evaluator ``clusters.zeroth-order``: zeroth-order fine-tuning (MeZO, ZO2) on one GPU."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np

from dse.core.batch import Batch
from dse.core.metric import Metric, Metrics
from dse.core.values import Floats
from dse.errors import SpecError, nearest
from dse_evaluators.clusters.choices import Labels
from dse_evaluators.clusters.chosen_options import ChosenOptions
from dse_evaluators.clusters.offload.data_placement import WIRES
from dse_evaluators.clusters.offload.rooms import first_broken, room
from dse_evaluators.clusters.offload.zeroth_order_time import (
    FITTED_HIDDEN,
    FITTED_TOKENS,
    FITTED_VOCABULARY,
    Blocks,
    OffloadRates,
    Parts,
    gpu_parts,
    total_s,
)
from dse_evaluators.clusters.own_system import (
    DeviceOption,
    device_from,
    label_of_device,
    system_edition,
)
from dse_evaluators.reading_table import ChoiceInput, Flag, NumberInput, Reading, one_of
from dse_evaluators.readings import number

_PLACES = ("gpu", "cpu")
_WORDS = {"fp32": 4.0, "tf32": 4.0, "bf16": 2.0, "fp16": 2.0}
_STEP_PARTS = ("compute", "perturb", "transfer")
_GPU_PARTS = ("runtime", "logits", "embedding", "blocks")
_YES_NO = ("no", "yes")
_METRICS = (
    Metric(name="step_time", unit="s", goal="minimize"),
    *(Metric(name=f"{part}_time", unit="s", part_of="step_time") for part in _STEP_PARTS),
    Metric(name="throughput", unit="1/s", goal="maximize"),
    Metric(name="slowdown", goal="minimize"),
    Metric(name="hidden_transfer", words=_YES_NO),
    Metric(name="tokens_to_hide", goal="minimize"),
    Metric(name="parameters", goal="maximize"),
    Metric(name="gpu_memory", unit="B", goal="minimize"),
    *(Metric(name=f"{part}_memory", unit="B", part_of="gpu_memory") for part in _GPU_PARTS),
    Metric(name="cpu_memory", unit="B", goal="minimize"),
    Metric(name="wire_traffic", unit="B", goal="minimize"),
    Metric(name="bottleneck", words=_STEP_PARTS),
    Metric(name="extrapolated", words=_YES_NO),
)
_READINGS: Mapping[str, Reading] = {
    "weights_at": one_of(_PLACES),
    "overlap": Flag(default=True),
    "fused_update": Flag(default=True),
    "wire_format": ChoiceInput(WIRES, "fp16"),
    "layers": NumberInput(1, 1e5, whole=True),
    "hidden": NumberInput(1, 1e7, whole=True),
    "vocabulary": NumberInput(0, 1e8, default=FITTED_VOCABULARY, whole=True),
    "positions": NumberInput(0, 1e8, default=2050.0, whole=True),
    "batch": NumberInput(1, 1e7, default=1.0, whole=True),
    "sequence": NumberInput(1, 1e8, default=2048.0, whole=True),
    "pcie_bandwidth": NumberInput(1, 1e15, "B/s", default=25e9),
    "host_memory": NumberInput(1, 1e18, "B", default=512e9),
}


class ZerothOrder(
    ChosenOptions,
    reads=_READINGS,
    provides=_METRICS,
    version="1",
    fits=("zeroth_order_memory.fits.json",),
):
    """Time and memory of a MeZO step with all weights on the GPU, or with streamed blocks (ZO2).

    A step is two forward passes with opposite perturbations of the weights. With ``weights_at`` cpu
    each block is fetched, computes both passes, and is sent back. ``overlap`` transfers a block
    while its neighbours compute; ``fused_update`` updates a block when it is next fetched, so that
    it makes one round trip per step instead of two. ``wire_format`` is the format of weights
    outside of the GPU (its effect on quality is not modelled). ``slowdown`` is relative to a GPU
    that holds all weights; ``tokens_to_hide`` is the tokens of a batch at which a block's two
    passes take as long as its transfer in one direction, without attention and perturbations.
    ``extrapolated`` is yes where the memory constants were not fitted: other token counts,
    vocabularies, widths or number formats, and models that stay on the GPU.

    Args:
        device: a name of ``accelerators.devices``, ``{like: rtx-4090, memory: 48 GB}``, a YAML
            file, or a list of these from which each design chooses.
        number_format: number format of the GEMMs and of weights on the GPU: fp32, tf32, bf16 or
            fp16.
        compute_share: share of the data sheet's rate that GEMMs reach: assumed.

    Inputs:
        batch: number of sequences.
        sequence: tokens of a sequence.
        pcie_bandwidth: bandwidth of PCIe in each direction.

    Limits:
        Not modelled: conversion between formats, random number generation, GEMMs too small for the
        device's rate.

    Error:
        Memory of four OPT models that were not fitted: mean 1.9 %, largest 4.8 %. The time agrees
        with a block-by-block simulation; no measured time was available.

    Example:
        options: {device: a100-sxm-80gb, layers: 40, hidden: 5120}
        parameters: {weights_at: [gpu, cpu], wire_format: [fp8, fp16]}

    Raises:
        SpecError: the device is unknown or has no rate in the format, or a number is out of range.

    Source:
        Malladi et al.: Fine-Tuning Language Models with Just Forward Passes (MeZO), 2023; Wang et
        al.: ZO2: Scalable Zeroth-Order Fine-Tuning for Extremely Large Language Models with
        Limited GPU Memory, 2025.
    """

    user_options: ClassVar[Sequence[str]] = ("device",)
    choosable: ClassVar[Labels] = {"device": label_of_device}

    device: DeviceOption | Sequence[DeviceOption] = "a100-sxm-80gb"
    number_format: str = "fp16"
    compute_share: float = 0.5
    layers: float | None = None
    hidden: float | None = None
    vocabulary: float | None = None
    positions: float | None = None
    batch: float | None = None
    sequence: float | None = None
    pcie_bandwidth: float | str | None = None
    host_memory: float | str | None = None

    def prepare(self) -> None:
        number(1e-6, 1.0)("compute_share", self.compute_share)
        self._device = device_from(self.device)
        edition = system_edition(self.device)
        self.version = "-".join(filter(None, (type(self).version, edition)))
        rates = [name for name in _WORDS if name in self._device.flops_per_s]
        if self.number_format not in rates:
            raise SpecError(
                f"{self._device.name} has no rate in {self.number_format!r}",
                hint=nearest(self.number_format, rates),
            )
        self._dram_bytes = self._device.dram_bytes
        self._word_bytes = _WORDS[self.number_format]
        super().prepare()

    def evaluate_options(self, batch: Batch) -> Metrics:
        """Return time and memory of n fine-tuning steps, (n,) by metric, with infeasible plans."""
        columns = self._readings.columns(batch)
        blocks = self._blocks(batch, columns)
        took, pace = total_s(blocks), blocks.pace
        alone_s = took["compute_time"] + took["perturb_time"]
        step_s = alone_s + took["transfer_time"]
        memory = self._memory(columns, blocks)
        runtime, logits, embedding, kept = memory.values()
        gpu_memory = runtime + logits + embedding + kept
        count = blocks.layers * blocks.weights
        cpu_memory = np.where(blocks.streamed, blocks.wire_bytes * count, 0.0)
        times = np.stack([took[f"{part}_time"] for part in _STEP_PARTS])
        return Metrics(
            columns={
                "step_time": step_s,
                **took,
                "throughput": blocks.tokens / step_s,
                "slowdown": step_s / alone_s,
                "hidden_transfer": (blocks.line_s <= blocks.first_s).astype(np.float64),
                "tokens_to_hide": pace.flops_per_s * blocks.wire_bytes / (4.0 * pace.wire),
                "parameters": count + blocks.embedding,
                "gpu_memory": gpu_memory,
                **{f"{part}_memory": memory[part] for part in _GPU_PARTS},
                "cpu_memory": cpu_memory,
                "wire_traffic": blocks.wire_traffic,
                "bottleneck": np.argmax(times, axis=0).astype(np.float64),
                "extrapolated": self._flag_extrapolation(columns, blocks),
            },
            failures=first_broken(
                (
                    room("gpu_memory", gpu_memory, np.full_like(gpu_memory, self._dram_bytes)),
                    room("cpu_memory", cpu_memory, columns["host_memory"]),
                ),
                len(batch),
            ),
        )

    def _blocks(self, batch: Batch, columns: Mapping[str, Floats]) -> Blocks:
        size = len(batch)
        return Blocks(
            layers=columns["layers"],
            hidden=columns["hidden"],
            vocabulary=columns["vocabulary"],
            positions=columns["positions"],
            tokens=columns["batch"] * columns["sequence"],
            sequence=columns["sequence"],
            word_bytes=np.full(size, self._word_bytes),
            wire_bytes=np.where(
                batch.absent("wire_format"), self._word_bytes, columns["wire_format"]
            ),
            streamed=columns["weights_at"] > 0.0,
            overlap=columns["overlap"] > 0.0,
            fused=columns["fused_update"] > 0.0,
            pace=OffloadRates(
                flops_per_s=self._device.flops_per_s[self.number_format] * self.compute_share,
                dram_bytes_per_s=self._device.dram_bytes_per_s,
                wire=columns["pcie_bandwidth"],
            ),
        )

    def _memory(self, columns: Mapping[str, Floats], blocks: Blocks) -> Parts:
        word = blocks.word_bytes
        whole = blocks.layers * blocks.weights * word
        return gpu_parts(
            embedding=blocks.embedding * word,
            blocks=blocks.weights * word,
            tokens=blocks.tokens,
            vocabulary=columns["vocabulary"],
            resident=np.where(blocks.streamed, 0.0, whole),
        )

    def _flag_extrapolation(self, columns: Mapping[str, Floats], blocks: Blocks) -> Floats:
        low, high = FITTED_HIDDEN
        other = (blocks.tokens != FITTED_TOKENS) | (columns["vocabulary"] != FITTED_VOCABULARY)
        other |= (columns["hidden"] < low) | (columns["hidden"] > high) | ~blocks.streamed
        return (other | (self._word_bytes != _WORDS["fp16"])).astype(np.float64)
