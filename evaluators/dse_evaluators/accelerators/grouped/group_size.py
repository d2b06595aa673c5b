"""Evaluator ``accelerators.group-size``: energy of grouped convolutions by group size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np

from dse.core.batch import Batch
from dse.core.metric import Metric, Metrics
from dse.core.values import Floats, Value
from dse_evaluators.accelerators.circuits import logic_energy_factor, mac_energy_j
from dse_evaluators.accelerators.grouped.grouped_convolution import (
    ConvolutionShapes,
    GroupConvolutionNetwork,
    sum_layers,
)
from dse_evaluators.accelerators.grouped.grouped_readings import (
    READINGS,
    Regrouped,
    check_grouping,
    read_grouping,
)
from dse_evaluators.accelerators.technology import DRAM_J_PER_BYTE
from dse_evaluators.declared_evaluator import DeclaredEvaluator
from dse_evaluators.formats.words import FORMATS
from dse_evaluators.reading_table import one_of
from dse_evaluators.readings import look_up_row
from dse_evaluators.workloads.own.own_workload import known_layers

_BOUND = ("compute", "memory")

_METRICS = (
    Metric(name="energy", unit="J", goal="minimize"),
    Metric(name="mac_energy", unit="J", part_of="energy"),
    Metric(name="input_energy", unit="J", part_of="energy"),
    Metric(name="output_energy", unit="J", part_of="energy"),
    Metric(name="weight_energy", unit="J", part_of="energy"),
    Metric(name="bottleneck", words=_BOUND),
    Metric(name="efficiency", unit="MAC/J", goal="maximize"),
    Metric(name="intensity", unit="MAC", goal="maximize"),
    Metric(name="grouped_intensity", unit="MAC", goal="maximize"),
    Metric(name="traffic", unit="B", goal="minimize"),
    Metric(name="macs", unit="MAC", goal="maximize"),
    Metric(name="weights", goal="minimize"),
    Metric(name="solved_width"),
)

_FORMAT = "fp32"


class GroupSize(
    DeclaredEvaluator,
    reads={**READINGS, "number_format": one_of(FORMATS, _FORMAT)},
    provides=_METRICS,
    version="1",
):
    """Energy of a network with regrouped convolutions, if each word is moved from memory once.

    Metrics are of one batch. ``intensity`` is multiply-accumulates per word moved,
    ``grouped_intensity`` the same for the regrouped layers alone; ``bottleneck`` is ``memory`` if
    moving words takes more energy than multiplying, else ``compute``.

    Args:
        workload: a workload of ``workloads.catalogue``, or a file of yours
            (``docs/workloads.md``), evaluated as a chain of layers.
        dram: a key of ``technology.DRAM_J_PER_BYTE``.
        node_nm: technology node of the multipliers, in nm.

    Inputs:
        group, grouping, width, batch: as for ``accelerators.row-stationary``.
        number_format: that of weights and activations.

    Limits:
        On-chip memory is not modelled, so that every word that a layer reads or writes goes to
        DRAM: an upper bound on the energy of moving data, and on the saving from a better group
        size.

    Error:
        Only the direction is valid: groups of one size are 1 to 9 % more efficient than one number
        of groups (published: 10.8 %).

    Example:
        parameters: {group: [1, 4, 16], number_format: [fp32, int8]}

    Source:
        Jha et al.: E2GC: Energy-Efficient Group Convolution in Deep Neural Networks, 2020,
        section 3. Energies are those of :mod:`.technology`.

    Raises:
        SpecError: there is no such workload or memory.
    """

    user_options: ClassVar[Sequence[str]] = ("workload",)

    workload: object = "mobilenetv1"
    dram: str = "lpddr2"
    node_nm: float = 45.0

    def __post_init__(self) -> None:
        self._dram_j = look_up_row("dram", self.dram, DRAM_J_PER_BYTE)
        self._network = GroupConvolutionNetwork(known_layers(self, self.workload))
        self._mac_j: Mapping[Value, float] = {
            name: mac_energy_j(row, row) * logic_energy_factor(self.node_nm)
            for name, row in FORMATS.items()
        }
        super().__post_init__()

    def check_values(self, values: Mapping[str, Sequence[Value]]) -> None:
        check_grouping(self._network, self._readings, values)

    def evaluate(self, batch: Batch) -> Metrics:
        """Compute the energy, traffic and intensity of n designs."""
        asked = read_grouping(self._network, batch)
        shapes = self._network.shapes(asked.grouping)
        mac_j = batch.lookup("number_format", self._mac_j, self._mac_j[_FORMAT])
        word_bytes = batch.lookup("number_format", _BYTES, _BYTES[_FORMAT])
        words = _words(shapes, asked)
        macs = sum_layers(shapes.macs) * asked.batch
        energies = {
            "mac": macs * mac_j,
            **{name: moved * word_bytes * self._dram_j for name, moved in words.items()},
        }
        energy = sum_layers(np.array(list(energies.values())))
        moved = sum_layers(np.array(list(words.values())))
        return Metrics(
            columns={
                **{f"{name}_energy": part for name, part in energies.items()},
                "energy": energy,
                "bottleneck": (energy - energies["mac"] > energies["mac"]).astype(float),
                "efficiency": macs / energy,
                "intensity": macs / moved,
                "grouped_intensity": self._grouped_intensity(shapes, asked.batch),
                "traffic": moved * word_bytes,
                "macs": macs,
                "weights": sum_layers(shapes.weights),
                "solved_width": asked.grouping.width,
            }
        )

    def _grouped_intensity(self, shapes: ConvolutionShapes, images: Floats) -> Floats:
        """Return the multiply-accumulates per word moved of the regrouped layers; 0 without any."""
        grouped = self._network.grouped
        signals = (shapes.input_words + shapes.output_words) * images
        words = sum_layers((signals + shapes.weights) * grouped)
        macs = sum_layers(shapes.macs * grouped) * images
        return np.divide(macs, words, out=np.zeros_like(macs), where=words > 0)


_BYTES: Mapping[Value, float] = {name: row.bits / 8 for name, row in FORMATS.items()}


def _words(shapes: ConvolutionShapes, asked: Regrouped) -> Mapping[str, Floats]:
    return {
        "input": sum_layers(shapes.input_words) * asked.batch,
        "output": sum_layers(shapes.output_words) * asked.batch,
        "weight": sum_layers(shapes.weights),
    }
