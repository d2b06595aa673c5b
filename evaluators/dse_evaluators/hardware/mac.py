"""Evaluator ``hardware.mac``: energy and area of a multiply-accumulate of two formats at a node."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from dse.core.batch import Batch
from dse.core.metric import Metric, Metrics
from dse.core.values import Floats
from dse_evaluators.accelerators.technology import NOMINAL_V
from dse_evaluators.declared_evaluator import DeclaredEvaluator
from dse_evaluators.hardware.macs import mac_of, word_of
from dse_evaluators.hardware.nodes import check_node, node_of
from dse_evaluators.reading_table import CheckedInput, NumberInput, Reading, Readings
from dse_evaluators.readings import check_with_lookup

_METRICS = (
    Metric(name="energy", unit="J", goal="minimize"),
    Metric(name="multiply_energy", unit="J", goal="minimize", part_of="energy"),
    Metric(name="add_energy", unit="J", goal="minimize", part_of="energy"),
    Metric(name="scale_energy", unit="J", goal="minimize", part_of="energy"),
    Metric(name="area", unit="mm2", goal="minimize"),
    Metric(name="extrapolated", words=("no", "yes")),
)

_INPUTS: Mapping[str, Reading] = {
    "weight_format": CheckedInput(check_with_lookup(word_of)),
    "activation_format": CheckedInput(check_with_lookup(word_of), default=""),
    "node_nm": CheckedInput(check_node),
    "voltage": NumberInput(0, 2, "V", default=NOMINAL_V),
}


class MacCost(DeclaredEvaluator, reads=_INPUTS, provides=_METRICS, version="1"):
    """Energy and area of a multiplier, its adder, and its share of block-scale arithmetic.

    Formats are those of ``accelerators.systolic`` and of ``compression.recipe``, such as ``mxfp4``
    and ``int4:group=32``. Registers, control and wiring are not counted.

    Args:
        node_nm: technology node in nm if the space has none: 22 to 90, or 16, 10, 7 or 5.

    Inputs:
        activation_format: by default the same as the format of weights.

    Error:
        Tabulated formats agree. At 7 nm at most 27 %, median 16 %; bf16, which was not fitted: 12
        %. Details: ``docs/technology.md``.

    Example:
        parameters: {weight_format: [int4, int8, fp16], activation_format: [int8], node_nm: [7, 22]}

    Raises:
        SpecError: there are no figures for the node.

    Source:
        Horowitz, ISSCC 2014; Jouppi et al., ISCA 2021; Dally, NIPS 2015: see
        ``docs/technology.md`` for the errors.
    """

    node_nm: float = 45.0

    def __post_init__(self) -> None:
        self.declare(Readings(_INPUTS).otherwise({"node_nm": self.node_nm}))

    def evaluate(self, batch: Batch) -> Metrics:
        """Compute the energy and the area of one multiply-accumulate in each of n designs."""
        weights = batch["weight_format"].tolist()
        inputs = batch["activation_format"].tolist() if "activation_format" in batch else weights
        nodes = self._readings.column("node_nm", batch).tolist()
        raised = self._readings.column("voltage", batch) / NOMINAL_V
        keys = list(zip(weights, inputs, nodes, strict=True))
        table = {key: _row(*key) for key in dict.fromkeys(keys)}
        found = np.array([table[key] for key in keys]).reshape(-1, 5)
        parts: Floats = found[:, :3] * (raised**2)[:, np.newaxis]  # (n, 3)
        columns = {
            "energy": parts[:, 0] + parts[:, 1] + parts[:, 2],
            "multiply_energy": parts[:, 0],
            "add_energy": parts[:, 1],
            "scale_energy": parts[:, 2],
            "area": found[:, 3],
            "extrapolated": found[:, 4],
        }
        return Metrics(columns=columns)


def _row(weight: str, activation: str, nm: float) -> tuple[float, float, float, float, float]:
    mac, node = mac_of(word_of(weight), word_of(activation)), node_of(nm)
    scale = node.logic_energy
    return (
        mac.multiply_j * scale,
        mac.add_j * scale,
        mac.scale_j * scale,
        mac.area_mm2 * node.area,
        float(node.extrapolated),
    )
