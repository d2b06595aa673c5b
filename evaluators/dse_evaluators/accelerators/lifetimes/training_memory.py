"""Evaluator ``accelerators.training-memory``: a training step by memory for its activations."""

from __future__ import annotations

from collections.abc import Mapping

from dse.core.batch import Batch
from dse.core.metric import Metric, Metrics
from dse.core.values import Value
from dse_evaluators.accelerators.circuits import logic_energy_factor, mac_energy_j
from dse_evaluators.accelerators.lifetimes.memory_kinds import (
    KINDS,
    NODE_NM,
    RETENTION_S,
    retention_s,
)
from dse_evaluators.accelerators.lifetimes.training_cost import (
    PARTS,
    TrainingStepCost,
    costs,
    short_of_memory,
)
from dse_evaluators.accelerators.technology import DRAM_J_PER_BYTE
from dse_evaluators.counts import check_count
from dse_evaluators.declared_evaluator import DeclaredEvaluator
from dse_evaluators.formats.words import FORMATS
from dse_evaluators.reading_table import Flag, NumberInput, Reading, Readings, one_of
from dse_evaluators.readings import look_up_row

_METRICS = (
    Metric(name="energy", unit="J", goal="minimize"),
    *(Metric(name=f"{name}_energy", unit="J", part_of="energy") for name in PARTS),
    Metric(name="latency", unit="s", goal="minimize"),
    Metric(name="compute_time", unit="s", part_of="latency"),
    Metric(name="wait_time", unit="s", part_of="latency"),
    Metric(name="bottleneck", words=("compute", "memory")),
    Metric(name="storage", unit="B", goal="minimize"),
    Metric(name="capacity", unit="B"),
    Metric(name="dram_traffic", unit="B", goal="minimize"),
    Metric(name="refreshed", unit="B", goal="minimize"),
    Metric(name="refreshes"),
    Metric(name="longest_lifetime", unit="s"),
    Metric(name="retention", unit="s"),
)

_SIZE = NumberInput(1, 1e15)
_FORMAT = "int8"
_READINGS: Mapping[str, Reading] = {
    "memory": one_of(KINDS),
    "refresh": one_of(("lifetime", "all"), "lifetime"),
    "cell_retention": NumberInput(1e-9, 1e3, "s", default=RETENTION_S),
    "spill": Flag(default=False),
    "celsius": NumberInput(-55, 150, default=85.0),
    "area": NumberInput(0, 1e4, "mm2", default=4.0),
    "batch": _SIZE._replace(default=1.0),
    "number_format": one_of(FORMATS, _FORMAT),
    "multipliers": _SIZE._replace(default=256.0),
    "clock": _SIZE._replace(default=500e6, unit="Hz"),
    "dram_bandwidth": _SIZE._replace(default=4e9, unit="B/s"),
    "macs_per_activation": _SIZE._replace(default=73.0),
}


class TrainingMemory(DeclaredEvaluator, reads=_READINGS, provides=_METRICS, version="1"):
    """Energy and time of a training step, by memory kind and number of reversible blocks.

    DRAM transfers overlap with multiplications; ``wait_time`` is the time by which they take
    longer, and extends lifetimes.

    Args:
        blocks: number of blocks of the network.
        activations: number of input activations of each block, for one image.
        dram: a key of ``technology.DRAM_J_PER_BYTE``.

    Inputs:
        reversible_blocks: number of blocks, from the first on, that are reversible.
        area: area of the on-chip memory, which determines its capacity.
        spill: whether data that does not fit goes to DRAM; otherwise the design is infeasible.
        refresh: ``lifetime``: only data needed for longer than the retention time; ``all``: all
            stored data, during the entire step.
        cell_retention: retention time of eDRAM at 105 degrees.
        macs_per_activation: multiply-accumulates for each activation of a forward step; 73 is a
            depthwise 3 x 3 and a pointwise convolution of 64 channels.

    Limits:
        Not modelled: weights and their gradients, the accuracy of a reversible network, banks that
        are busy being refreshed, the dependence of leakage on temperature.

    Error:
        Refreshes by lifetime agree with the four published ones. The energy gain is 2.6
        and 2.7 (published: 2.8) at 73 multiplications per activation; 4.0 at 37, 1.7 at 146, none
        at 576.

    Example:
        parameters: {memory: [sram, edram, dram], reversible_blocks: [0, 3, 6], area: [2, 4]}

    Source:
        S. Q. Zhang et al.: CAMEL: Co-Designing AI Models and eDRAMs for Efficient On-Device
        Learning, HPCA 2024. Constants and their sources are in :mod:`.memory_kinds`.

    Raises:
        PluginError: ``blocks`` or ``activations`` is not an integer of at least 1.
        SpecError: there is no such DRAM.
    """

    blocks: int = 12
    activations: int = 64 * 1024
    dram: str = "lpddr2"

    def __post_init__(self) -> None:
        check_count("blocks", self.blocks, least=1)
        check_count("activations", self.activations, least=1)
        self._dram_j = look_up_row("dram", self.dram, DRAM_J_PER_BYTE)
        self._mac_j: Mapping[Value, float] = {
            name: mac_energy_j(row, row) * logic_energy_factor(NODE_NM)
            for name, row in FORMATS.items()
        }
        blocks = NumberInput(0, self.blocks, whole=True)
        self.declare(Readings({**_READINGS, "reversible_blocks": blocks}))

    def evaluate(self, batch: Batch) -> Metrics:
        """Compute energy and time of n designs, with those whose data does not fit."""
        step = self._step(batch)
        return Metrics(columns=costs(step, self._dram_j), failures=short_of_memory(step))

    def _step(self, batch: Batch) -> TrainingStepCost:
        inputs = self._readings.columns(batch)
        images = inputs["batch"]
        word_bytes = batch.lookup("number_format", _BYTES, _BYTES[_FORMAT])
        return TrainingStepCost(
            blocks=self.blocks,
            reversible=inputs["reversible_blocks"],
            activation_bytes=self.activations * images * word_bytes,
            block_macs=self.activations * images * inputs["macs_per_activation"],
            macs_per_s=inputs["multipliers"] * inputs["clock"],
            mac_j=batch.lookup("number_format", self._mac_j, self._mac_j[_FORMAT]),
            kinds={name: inputs["memory"] == place for place, name in enumerate(KINDS)},
            area_mm2=inputs["area"],
            spill=inputs["spill"] > 0,
            refresh_all=inputs["refresh"] > 0,
            retention_s=retention_s(inputs["celsius"], inputs["cell_retention"]),
            dram_bytes_per_s=inputs["dram_bandwidth"],
        )


_BYTES: Mapping[Value, float] = {name: row.bits / 8 for name, row in FORMATS.items()}
