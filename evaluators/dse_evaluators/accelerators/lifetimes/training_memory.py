"""The evaluator ``accelerators.training-memory``: where training keeps its activations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from dse.core.batch import Batch
from dse.core.metric import Kind, Metric, Metrics
from dse.core.values import Floats, Value
from dse.errors import SpecError, nearest
from dse_evaluators.accelerators.circuits import logic_energy_factor, mac_energy_j
from dse_evaluators.accelerators.lifetimes.memory_kinds import (
    KINDS,
    NODE_NM,
    RETENTION_S,
    retention_s,
)
from dse_evaluators.accelerators.lifetimes.training_cost import PARTS, Step, costs, short_of_memory
from dse_evaluators.accelerators.technology import DRAM_J_PER_BYTE
from dse_evaluators.counts import check_count
from dse_evaluators.formats.words import FORMATS
from dse_evaluators.readings import check_readings, flag, number, word

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

_DEFAULTS: Mapping[str, Value] = {
    "refresh": "lifetime",
    "cell_retention": RETENTION_S,
    "spill": False,
    "celsius": 85.0,
    "area": 4.0,
    "batch": 1,
    "number_format": "int8",
    "multipliers": 256,
    "clock": 500e6,
    "dram_bandwidth": 4e9,
    "macs_per_activation": 73,
}


@dataclass(kw_only=True, eq=False)
class TrainingMemory:
    """Energy and time of a training step, by memory kind and number of reversible blocks.

    Reads memory (``sram``, ``edram``, ``dram``) and reversible_blocks, so many of the first ones;
    optionally area (mm2 of the memory on the chip, from which its capacity follows), spill
    (whether what does not fit goes to DRAM; else the design cannot exist), refresh (``lifetime``:
    only data that is needed for longer than its cells hold it; ``all``: whatever is kept, as long
    as the step lasts), cell_retention (of eDRAM at 105 degrees), celsius, batch, number_format,
    multipliers, clock, dram_bandwidth and macs_per_activation (of a forward step; 73 is a depthwise
    3 x 3 and a pointwise convolution of 64 channels). DRAM works beside the multipliers;
    ``wait_time`` is what it needs longer, and lifetimes grow with it.

    Not modelled: weights and their gradients, whether a reversible network learns as well, banks
    that are busy being refreshed, leakage by temperature.

    Args:
        blocks: of the network.
        activations: numbers that go into each block, for one image.
        dram: a row of ``technology.DRAM_J_PER_BYTE``.

    Source:
        S. Q. Zhang et al.: CAMEL: Co-Designing AI Models and eDRAMs for Efficient On-Device
        Learning, HPCA 2024. Constants and their sources are in :mod:`.memory_kinds`.

    Raises:
        PluginError: a count is none.
        SpecError: there is no such DRAM.
    """

    blocks: int = 12
    activations: int = 64 * 1024
    dram: str = "lpddr2"
    reads: frozenset[str] = field(init=False)
    optional: frozenset[str] = field(init=False)
    units: Mapping[str, str] = field(init=False)
    provides: Mapping[str, Metric] = field(init=False)
    kind: Kind = field(init=False, default="modelled")
    version: str = field(init=False, default="1")

    def __post_init__(self) -> None:
        check_count("blocks", self.blocks, least=1)
        check_count("activations", self.activations, least=1)
        if self.dram not in DRAM_J_PER_BYTE:
            raise SpecError(
                f"dram cannot be {self.dram!r}", hint=nearest(self.dram, DRAM_J_PER_BYTE)
            )
        self._mac_j: Mapping[Value, float] = {
            name: mac_energy_j(row, row) * logic_energy_factor(NODE_NM)
            for name, row in FORMATS.items()
        }
        self.reads = frozenset({"memory", "reversible_blocks"})
        self.optional = frozenset(_DEFAULTS)
        self.units = {
            "area": "mm2",
            "clock": "Hz",
            "dram_bandwidth": "B/s",
            "cell_retention": "s",
        }
        self.provides = {metric.name: metric for metric in _METRICS}

    def check_values(self, values: Mapping[str, Sequence[Value]]) -> None:
        """Nothing, if it can be run on all of these values of its readings.

        Raises:
            SpecError: it cannot.
        """
        sizes = ("batch", "multipliers", "clock", "dram_bandwidth", "macs_per_activation")
        check_readings(
            values,
            {
                **dict.fromkeys(sizes, number(1, 1e15)),
                "memory": word(*KINDS),
                "reversible_blocks": number(0, self.blocks, whole=True),
                "refresh": word("lifetime", "all"),
                "spill": flag,
                "celsius": number(-55, 150),
                "area": number(0, 1e4),
                "cell_retention": number(1e-9, 1e3),
                "number_format": word(*FORMATS),
            },
        )

    def evaluate(self, batch: Batch) -> Metrics:
        """The metrics of n designs."""
        step = self._step(batch)
        dram_j = DRAM_J_PER_BYTE[self.dram]
        return Metrics(columns=costs(step, dram_j), faults=short_of_memory(step))

    def _step(self, batch: Batch) -> Step:
        images = self._number(batch, "batch")
        word_bytes = batch.lookup("number_format", _BYTES, _BYTES[str(_DEFAULTS["number_format"])])
        kinds = batch["memory"]
        return Step(
            blocks=self.blocks,
            reversible=batch["reversible_blocks"].astype(float),
            activation_bytes=self.activations * images * word_bytes,
            block_macs=self.activations * images * self._number(batch, "macs_per_activation"),
            macs_per_s=self._number(batch, "multipliers") * self._number(batch, "clock"),
            mac_j=batch.lookup(
                "number_format", self._mac_j, self._mac_j[str(_DEFAULTS["number_format"])]
            ),
            kinds={name: np.asarray(kinds == name) for name in KINDS},
            area_mm2=self._number(batch, "area"),
            spill=self._column(batch, "spill").astype(bool),
            refresh_all=np.asarray(self._column(batch, "refresh") == "all"),
            retention_s=retention_s(
                self._number(batch, "celsius"), self._number(batch, "cell_retention")
            ),
            dram_bytes_per_s=self._number(batch, "dram_bandwidth"),
        )

    def _number(self, batch: Batch, name: str) -> Floats:
        return np.asarray(self._column(batch, name), dtype=float)

    @staticmethod
    def _column(batch: Batch, name: str) -> Floats:
        return batch.get(name, _DEFAULTS[name])


_BYTES: Mapping[Value, float] = {name: row.bits / 8 for name, row in FORMATS.items()}
