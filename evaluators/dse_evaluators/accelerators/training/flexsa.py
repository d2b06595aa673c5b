"""Evaluator ``accelerators.flexsa``: training a pruned network on arrays that can be split."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from dse.core.batch import Batch
from dse.core.metric import Failure, Metric, Metrics
from dse.core.values import Floats, Ints, Value
from dse_evaluators.accelerators.training.alike_rows import alike
from dse_evaluators.accelerators.training.chains import chain_of
from dse_evaluators.accelerators.training.channel_tables import ChannelTables
from dse_evaluators.accelerators.training.sound_rows import sound
from dse_evaluators.accelerators.training.split_arrays import ARRAYS, SUMS, WORD_BYTES, Arrays, run
from dse_evaluators.accelerators.training.step_prices import OperationCosts
from dse_evaluators.accelerators.training.training_products import (
    ConvolutionTraining,
    TrainingProducts,
    sum_rows,
)
from dse_evaluators.alike import infeasible
from dse_evaluators.declared_evaluator import DeclaredEvaluator
from dse_evaluators.reading_table import ChoiceInput, NumberInput, Reading, Readings

BOTTLENECKS = ("array", "memory")

_METRICS = (
    Metric(name="latency", unit="s", goal="minimize"),
    Metric(name="array_time", unit="s", part_of="latency"),
    Metric(name="memory_wait", unit="s", part_of="latency"),
    Metric(name="cycles", goal="minimize"),
    Metric(name="utilization", goal="maximize"),
    Metric(name="parted_share"),
    Metric(name="buffer_traffic", unit="B", goal="minimize"),
    Metric(name="dram_traffic", unit="B", goal="minimize"),
    Metric(name="energy", unit="J", goal="minimize"),
    Metric(name="mac_energy", unit="J", part_of="energy"),
    Metric(name="buffer_energy", unit="J", part_of="energy"),
    Metric(name="dram_energy", unit="J", part_of="energy"),
    Metric(name="area", unit="mm2", goal="minimize"),
    Metric(name="macs"),
    Metric(name="macs_kept"),
    Metric(name="bottleneck", words=BOTTLENECKS),
    Metric(name="extrapolated", words=("no", "yes")),
)

# The clock: N. Jouppi et al., In-Datacenter Performance Analysis of a Tensor Processing Unit,
# ISCA 2017, section 2. The bandwidth: one stack of HBM2, JESD235A: 1024 bits at 2 Gb/s. The side of
# 128 is that of the paper's large array; the other defaults are choices.
KNOBS: Mapping[str, Reading] = {
    "array": ChoiceInput(ARRAYS, "flexible"),
    "groups": ChoiceInput({1: 1.0, 4: 4.0, 16: 16.0}, 1),
    "side": NumberInput(8, 4096, default=128.0),
    "block_rows": NumberInput(1, 1e6, default=256.0),
    "sums": ChoiceInput(SUMS, "drained"),
    "keep": NumberInput(0.05, 1, default=1.0),
    "draw": NumberInput(0, 2**32, default=0.0),
    "batch": NumberInput(1, 1e6, default=32.0),
    "buffer": NumberInput(1, 2**40, "B", default=10.0 * 1024**2),
    "clock": NumberInput(1, 1e12, "Hz", default=700e6),
    "dram_bandwidth": NumberInput(1, 1e16, "B/s", default=256e9),
}

_RATES = ("clock", "dram_bandwidth")
"""Inputs that affect only the time; the others determine the work."""

_CHUNK = 256
"""Largest number of designs computed at once, so that their arrays fit in the CPU's caches."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Laid:
    """Cycles and DRAM bytes of p GEMMs for c distinct designs, (p, c), and their sums, (c,)."""

    cycles: Floats
    dram_bytes: Floats
    sums: Mapping[str, Floats]


class FlexSa(DeclaredEvaluator, reads=KNOBS, provides=_METRICS, version="1"):
    """Training step of a pruned network: forward pass, gradients of inputs and of weights.

    ``parted_share`` is the fraction of cycles in which FlexSA's sub-arrays do not work as one
    array, ``macs_kept`` the fraction of multiplications left after pruning.

    In each GEMM, the smallest of the three matrices stays in half of the buffer, while the others
    are moved to or from DRAM once. If the smallest is too large for that, one part of it is kept at
    a time, and the second smallest matrix is moved once per part. Normalization, activation,
    optimizer and the reconfiguration of FlexSA cost nothing.

    Args:
        network: ``resnet50`` or ``vgg16``, without its classifier.
        knobs: values that replace defaults of inputs that the space does not have, in the units
            of the inputs.
        node_nm: technology node in nm, 22 to 90: the range of the SRAM fit.
        dram: a key of ``technology.DRAM_J_PER_BYTE``.

    Inputs:
        array: one ``large`` array, four of half its side (``split``), or the four of FlexSA, which
            can be combined (``flexible``).
        side: each array, or group of parts, has side x side elements.
        groups: number of groups among which the elements and each GEMM are divided.
        sums: whether partial sums go to the buffer after every tile (``drained``), or are ``kept``
            at the array until they are final.
        keep, draw: mean share of channels kept, and random seed: see :mod:`.channel_tables`.

    Limits:
        No published table lists the channels that remain after pruning: shares are drawn at random
        (``draw``) within a quarter of ``keep``, and residual stages keep the union of the channels
        of their blocks. Parts of the array share rows evenly. Filling an array and switching
        FlexSA's modes cost nothing. ``sums`` decides the gain in reuse.

    Error:
        Tiles agree with enumeration. Gains, with the published ones in parentheses: utilization
        1.36 (1.37), reuse 1.70 or 1.44 depending on ``sums`` (1.7), energy 16 % (28 %).

    Example:
        options: {network: vgg16}
        parameters: {array: [large, split, flexible], keep: [0.5, 0.9], batch: [8, 32]}

    Raises:
        SpecError: an option has an invalid value.

    Source:
        As :mod:`.split_arrays`.
    """

    network: str = "resnet50"
    knobs: Mapping[str, Value] = field(default_factory=dict)
    node_nm: float = 45.0
    dram: str = "hbm2"

    def __post_init__(self) -> None:
        convs = [conv for block in chain_of(self.network) for conv in block.all_convs]
        self._training, self._tables = ConvolutionTraining(convs), ChannelTables(convs)
        self._whole_macs = 3.0 * sum(conv.macs for conv in convs) - convs[0].macs
        self.declare(Readings(KNOBS).fixed(self.knobs))
        self._prices = OperationCosts(self.node_nm, self.dram)

    def evaluate(self, batch: Batch) -> Metrics:
        """Compute time, traffic, energy and area of n designs, with the infeasible ones."""
        knobs, failures = sound(self._readings, self._readings.columns(batch))
        failures = {**_small_buffers(knobs), **failures}
        columns = {name: np.empty(len(batch)) for name in self.provides}
        decided = alike([knobs[name] for name in KNOBS if name not in _RATES])
        for some, pieces in decided.chunks(_CHUNK):
            laid = self._laid({name: column[some] for name, column in knobs.items()})
            for rows, place in pieces:
                here = {name: column[rows] for name, column in knobs.items()}
                for name, values in self._price_designs(laid, place, here).items():
                    columns[name][rows] = values
        return Metrics(columns=columns, failures=failures)

    def _laid(self, knobs: Mapping[str, Floats]) -> _Laid:
        """Return cycles and DRAM bytes of the GEMMs; neither depends on clock or bandwidth."""
        products = self._training.products(
            self._tables.channels(knobs["keep"], knobs["draw"]), knobs["batch"]
        )
        done = run(products, _arrays(knobs))
        dram_bytes = _dram_bytes(products, knobs["buffer"])
        return _Laid(
            cycles=done.cycles,
            dram_bytes=dram_bytes,
            sums={
                "macs": sum_rows(products.macs),
                "cycles": sum_rows(done.cycles),
                "parted": sum_rows(done.parted_cycles),
                "read": sum_rows(done.read_bytes),
                "written": sum_rows(done.written_bytes),
                "moved": sum_rows(dram_bytes),
            },
        )

    def _price_designs(
        self, laid: _Laid, place: Ints, knobs: Mapping[str, Floats]
    ) -> Mapping[str, Floats]:
        sums = {name: values[place] for name, values in laid.sums.items()}
        # A GEMM takes as long as its array cycles or its traffic, whichever is longer.
        cycles_per_byte = knobs["clock"] / knobs["dram_bandwidth"]
        longer = np.maximum(laid.cycles[:, place], laid.dram_bytes[:, place] * cycles_per_byte)
        latency_s, array_s = sum_rows(longer) / knobs["clock"], sums["cycles"] / knobs["clock"]
        wait_s = np.maximum(latency_s - array_s, 0.0)
        energies = self._prices.energies(
            macs=sums["macs"],
            buffer_bytes=knobs["buffer"],
            read_bytes=sums["read"],
            written_bytes=sums["written"],
            dram_bytes=sums["moved"],
        )
        return {
            **energies,
            "array_time": array_s,
            "memory_wait": wait_s,
            "latency": array_s + wait_s,
            "energy": sum(energies.values(), start=np.zeros(1)),
            "cycles": sums["cycles"],
            "utilization": sums["macs"] / (sums["cycles"] * knobs["side"] ** 2),
            "parted_share": sums["parted"] / sums["cycles"],
            "buffer_traffic": sums["read"] + sums["written"],
            "dram_traffic": sums["moved"],
            **self._silicon(knobs),
            "macs": sums["macs"],
            "macs_kept": sums["macs"] / (self._whole_macs * knobs["batch"]),
            "bottleneck": (wait_s > array_s).astype(float),
        }

    def _silicon(self, knobs: Mapping[str, Floats]) -> Mapping[str, Floats]:
        """Return the area [mm2], and whether a memory is smaller than all of the SRAM fit.

        The area includes the multipliers, the buffer, and the memories that hold the partial sums
        of a block of rows, one per array or part of an array.
        """
        parts = np.where(knobs["array"] == ARRAYS["large"], 1.0, 4.0) * knobs["groups"]
        beside = knobs["block_rows"] * knobs["side"] / np.sqrt(parts) * 2.0 * WORD_BYTES
        area = knobs["side"] ** 2 * self._prices.mac_mm2 + self._prices.sram_mm2(knobs["buffer"])
        return {
            "area": area + self._prices.sram_mm2(beside) * parts,
            "extrapolated": self._prices.beyond_fit(knobs["buffer"], beside),
        }


def _arrays(knobs: Mapping[str, Floats]) -> Arrays:
    return Arrays(
        kind=knobs["array"],
        side=knobs["side"] / np.sqrt(knobs["groups"]),
        groups=knobs["groups"],
        block_rows=knobs["block_rows"],
        sums=knobs["sums"],
    )


def _dram_bytes(products: TrainingProducts, buffer_bytes: Floats) -> Floats:
    """Return the bytes that each of p GEMMs moves to and from DRAM in n designs, (p, n)."""
    inputs, outputs, weights = products.inputs, products.outputs, products.weights
    least = np.minimum(np.minimum(inputs, outputs), weights)
    most = np.maximum(np.maximum(inputs, outputs), weights)
    every = inputs + outputs + weights
    turns = np.ceil(least * (WORD_BYTES / (buffer_bytes / 2.0)))
    return (every + (every - least - most) * (turns - 1.0)) * WORD_BYTES


def _small_buffers(knobs: Mapping[str, Floats]) -> dict[int, Failure]:
    """Return a fault for each design whose buffer is too small for its groups.

    It must hold a block of rows and a tile for each group of arrays, both double-buffered.
    """
    side = knobs["side"] / np.sqrt(knobs["groups"])
    needs = 2.0 * knobs["groups"] * (knobs["block_rows"] + side) * side * WORD_BYTES
    has = knobs["buffer"]
    return infeasible(
        np.asarray(needs > has),
        lambda row: (
            f"needs {needs[row] / 1024:.1f} KiB of buffer for two blocks of rows and two tiles, "
            f"has {has[row] / 1024:.1f} KiB: {(needs[row] - has[row]) / 1024:.1f} KiB short"
        ),
    )
