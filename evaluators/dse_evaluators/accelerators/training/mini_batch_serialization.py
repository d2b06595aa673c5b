"""Evaluator ``accelerators.mini-batch-serialization``: a training step run in sub-batches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field

import numpy as np

from dse.core.batch import Batch
from dse.core.metric import Metric, Metrics
from dse.core.values import Floats, Mask, Value
from dse.errors import SpecError
from dse_evaluators.accelerators.training.block_footprints import BlockWork, footprints
from dse_evaluators.accelerators.training.chains import chain_of
from dse_evaluators.accelerators.training.serialization import (
    SCHEDULES,
    BlockTraffic,
    Cuts,
    SerializationPlan,
    best_cuts,
    every_group,
    traffic,
)
from dse_evaluators.accelerators.training.sound_rows import sound
from dse_evaluators.accelerators.training.step_prices import OperationCosts
from dse_evaluators.accelerators.training.training_products import sum_rows
from dse_evaluators.declared_evaluator import DeclaredEvaluator
from dse_evaluators.reading_table import ChoiceInput, NumberInput, Reading, Readings

BOTTLENECKS = ("array", "memory")

_METRICS = (
    Metric(name="dram_traffic", unit="B", goal="minimize"),
    Metric(name="activation_traffic", unit="B", part_of="dram_traffic"),
    Metric(name="weight_traffic", unit="B", part_of="dram_traffic"),
    Metric(name="crossing_traffic", unit="B", part_of="dram_traffic"),
    Metric(name="latency", unit="s", goal="minimize"),
    Metric(name="array_time", unit="s", part_of="latency"),
    Metric(name="memory_wait", unit="s", part_of="latency"),
    Metric(name="energy", unit="J", goal="minimize"),
    Metric(name="mac_energy", unit="J", part_of="energy"),
    Metric(name="buffer_energy", unit="J", part_of="energy"),
    Metric(name="dram_energy", unit="J", part_of="energy"),
    Metric(name="groups"),
    Metric(name="smallest_sub_batch"),
    Metric(name="largest_sub_batch"),
    Metric(name="falls"),
    Metric(name="spilled"),
    Metric(name="bottleneck", words=BOTTLENECKS),
    Metric(name="extrapolated", words=("no", "yes")),
)

# The clock: N. Jouppi et al., In-Datacenter Performance Analysis of a Tensor Processing Unit,
# ISCA 2017, section 2. The bandwidth: one stack of HBM2, JESD235A: 1024 bits at 2 Gb/s. The other
# defaults are choices: the paper's own values were not available.
KNOBS: Mapping[str, Reading] = {
    "schedule": ChoiceInput(SCHEDULES, "serialised"),
    "buffer": NumberInput(1, 2**40, "B", default=10.0 * 1024**2),
    "batch": NumberInput(1, 1e6, default=32.0),
    "gradient_bytes": NumberInput(1, 8, "B", default=2.0),
    "side": NumberInput(8, 4096, default=128.0),
    "clock": NumberInput(1, 1e12, "Hz", default=700e6),
    "dram_bandwidth": NumberInput(1, 1e16, "B/s", default=256e9),
}

_CUTS = "cuts"


class MiniBatchSerialization(DeclaredEvaluator, reads=KNOBS, provides=_METRICS, version="1"):
    """Training step of a chain of blocks in groups that each process one sub-batch at a time.

    ``falls`` counts groups whose sub-batch is smaller than that of the previous group, ``spilled``
    the blocks of which not even one sample fits; these run conventionally. A block that fits is
    always serialised. Therefore a larger buffer can increase the traffic by making a block fit;
    once all blocks fit, it cannot. The time of a block is the maximum of its GEMMs on the array and
    its DRAM traffic. Pooling, the classifier and the vector units are free; sub-batches do not
    change the cycles of the array.

    Args:
        network: ``resnet50`` (17 blocks) or ``vgg16`` (5).
        knobs: values that replace defaults of inputs that the space does not have, in the units
            of the inputs.
        node_nm: technology node in nm, 22 to 90: the range of the SRAM fit.
        dram: a key of ``technology.DRAM_J_PER_BYTE``.

    Inputs:
        cuts: a partition of the chain, or one number: the only cut; without it there is one group.
        schedule: only ``serialised`` uses cuts and buffer.
        gradient_bytes: per element of the weight gradient.
        side: the systolic array has side x side elements.

    Limits:
        Every saving is relative to ``schedule: conventional``, where a normalization passes through
        DRAM eight times; ``fused-norm`` is the other extreme. A block of which only one sample fits
        is serialised even if that moves more bytes (VGG-16 in one group at 4 MiB).

    Error:
        The traffic saved at 10 MiB is 72.7 % (published: 75 %); relative to a baseline with fused
        norms it is 57.7 %. The speed-up results from bandwidth alone and does not check the
        published 1.53.

    Example:
        options: {network: vgg16}
        parameters:
            {schedule: [fused-norm, serialised], cuts: [1, 2, 3], buffer: [8000000, 20000000],
            batch: [32]}

    Raises:
        SpecError: an option has an invalid value.

    Source:
        As :mod:`.block_footprints`.
    """

    network: str = "resnet50"
    knobs: Mapping[str, Value] = field(default_factory=dict)
    node_nm: float = 45.0
    dram: str = "hbm2"

    def __post_init__(self) -> None:
        chain = chain_of(self.network)
        self._prints, self._work = footprints(chain), BlockWork(chain)
        self.declare(Readings(KNOBS).fixed(self.knobs))
        self.optional |= {_CUTS}
        self._prices = OperationCosts(self.node_nm, self.dram)

    @property
    def blocks(self) -> int:
        """Number of blocks of layers in the network."""
        return len(self._prints.need)

    def check_values(self, values: Mapping[str, Sequence[Value]]) -> None:
        super().check_values({name: some for name, some in values.items() if name in KNOBS})
        for name, places in values.items():
            if name not in KNOBS and not all(0 < float(place) < self.blocks for place in places):
                hint = f"a cut is the block after it, 1 to {self.blocks - 1} in {self.network}"
                raise SpecError(f"{name} cannot be {max(map(float, places)):g}", hint=hint)

    def evaluate(self, batch: Batch) -> Metrics:
        """Compute time, traffic and energy of n designs; values out of range are infeasible."""
        knobs, failures = sound(self._readings, self._readings.columns(batch))
        moved = traffic(self._prints, _plan(knobs, _starts(batch, self.blocks)))
        return Metrics(columns=self._columns(knobs, moved), failures=failures)

    def best(self, batch: Batch) -> list[Cuts]:
        """Find, for each design, the partition of the blocks into groups with least DRAM traffic.

        The partition that the design itself states is ignored.
        """
        groups = every_group(self.blocks)
        rows = np.arange(len(groups))
        first, last = (np.array(ends) for ends in zip(*groups, strict=True))
        starts = np.zeros((self.blocks + 1, len(groups)), dtype=bool)
        starts[0] = starts[first, rows] = starts[last + 1, rows] = True
        place = np.arange(self.blocks)[:, np.newaxis]
        inside = (place >= first) & (place <= last)
        found = []
        for row in range(len(batch)):
            one = self._readings.columns(batch.take(np.array([row])))
            moved = traffic(self._prints, _plan(one, starts[:-1]))
            prices = np.full((self.blocks, self.blocks), np.inf)
            prices[first, last] = sum_rows(moved.bytes * inside)
            found.append(best_cuts(prices))
        return found

    def _columns(self, knobs: Mapping[str, Floats], moved: BlockTraffic) -> dict[str, Floats]:
        work = self._work.of(knobs["batch"], knobs["side"])
        array_s = work.cycles / knobs["clock"]
        wait_s = np.maximum(moved.bytes / knobs["dram_bandwidth"] - array_s, 0.0)
        times = {"array_time": sum_rows(array_s), "memory_wait": sum_rows(wait_s)}
        kinds = {
            "activation_traffic": sum_rows(moved.activation_bytes),
            "weight_traffic": sum_rows(moved.weight_bytes),
            "crossing_traffic": sum_rows(moved.crossing_bytes),
        }
        dram_bytes = _total(kinds)
        energies = self._prices.energies(
            buffer_bytes=knobs["buffer"],
            macs=work.macs,
            read_bytes=work.read_bytes + dram_bytes / 2.0,  # DRAM traffic also passes the buffer
            written_bytes=work.written_bytes + dram_bytes / 2.0,
            dram_bytes=dram_bytes,
        )
        return {
            **kinds,
            **times,
            **energies,
            **_portions(moved),
            "dram_traffic": dram_bytes,
            "latency": _total(times),
            "energy": _total(energies),
            "extrapolated": self._prices.beyond_fit(knobs["buffer"]),
            "bottleneck": (times["memory_wait"] > times["array_time"]).astype(float),
        }


def _plan(knobs: Mapping[str, Floats], starts: Mask) -> SerializationPlan:
    return SerializationPlan(
        starts=starts,
        schedule=knobs["schedule"],
        buffer_bytes=knobs["buffer"],
        samples=knobs["batch"],
        gradient_bytes=knobs["gradient_bytes"],
    )


def _starts(batch: Batch, blocks: int) -> Mask:
    """Return whether a group begins at each block, (b, n): at the first one and at every cut."""
    starts = np.zeros((blocks, len(batch)), dtype=bool)
    rows = np.arange(len(batch))
    for name in batch.names:
        if name == _CUTS or name.startswith(f"{_CUTS}["):
            starts[batch.get(name, 0).astype(np.intp), rows] = True
    starts[0] = True
    return starts


def _portions(moved: BlockTraffic) -> dict[str, Floats]:
    """Return the metrics of n partitions: groups, sub-batch sizes in samples, spilled blocks."""
    size = moved.sub_batch
    return {
        "groups": 1.0 + sum_rows(moved.starts[1:].astype(float)),
        "smallest_sub_batch": size.min(axis=0),
        "largest_sub_batch": size.max(axis=0),
        "falls": sum_rows((size[1:] < size[:-1]).astype(float)),
        "spilled": sum_rows(moved.spilled.astype(float)),
    }


def _total(parts: Mapping[str, Floats]) -> Floats:
    return sum(parts.values(), start=np.zeros(1))
