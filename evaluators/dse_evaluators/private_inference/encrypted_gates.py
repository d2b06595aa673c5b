"""The evaluator ``private.gates``: schedules of encrypted gates over devices."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from dse.core.batch import Batch
from dse.core.metric import Metric, Metrics
from dse_evaluators.alike import row_by_row
from dse_evaluators.amounts import amount
from dse_evaluators.declared_evaluator import DeclaredEvaluator
from dse_evaluators.private_inference.gate_graph import count_list_steps, dot_product
from dse_evaluators.reading_table import NumberInput, Reading, one_of

_SCHEDULES = ("level", "list")
_SUMS = ("chain", "tree")
_MOST_GATES = 2_000_000

INPUTS: Mapping[str, Reading] = {
    "length": NumberInput(1, 4096, whole=True),
    "word_bits": NumberInput(2, 64, default=8, whole=True),
    "sum": one_of(_SUMS, "tree"),
    "devices": NumberInput(1, 1024, default=1, whole=True),
    "slots": NumberInput(1, 1 << 16, default=864, whole=True),
    "schedule": one_of(_SCHEDULES, "list"),
}
METRICS = (
    Metric(name="latency", unit="s", goal="minimize"),
    Metric(name="lower_bound", unit="s"),
    Metric(name="gates", goal="minimize"),
    Metric(name="depth", goal="minimize"),
    Metric(name="mean_width", goal="maximize"),
    Metric(name="efficiency", goal="maximize"),
)


class EncryptedGates(DeclaredEvaluator, reads=INPUTS, provides=METRICS, version="1"):
    """Time of an encrypted dot product whose gates are scheduled over devices.

    Each gate is one bootstrap. A step runs as many gates as all devices have slots. ``level`` runs
    the gates of one level before those of the next; ``list`` runs whichever gates are ready, those
    with the longest remaining path first. ``efficiency`` is the speed-up over one device divided by
    the number of devices. ``lower_bound`` is the longer of two times: of the longest path, and of
    all gates in full steps.

    Args:
        gate_time: seconds of one bootstrap, or a text such as ``33 ms``.
        launch_time: seconds that each step adds.
        exchange_time: seconds that each step adds where there are several devices.

    Inputs:
        length: products in the dot product.
        word_bits: width of the operands and of the sum.
        sum: ``chain`` adds one product after another, ``tree`` adds pairs.
        devices: number of devices.
        slots: bootstraps that a device runs at a time.

    Limits:
        The default times and slots are assumptions about an A100; give those of your device.
        Adders are ripple-carry, products schoolbook. At most two million gates.

    Error:
        Absolute times are not validated. With the default times, eight devices are 5.5 times as
        fast as one on a dot product of 512 words of 16 bits; the paper states more than 6.7.

    Source:
        Gouert et al.: ArctyrEX: Accelerated Encrypted Execution of General-Purpose Applications,
        2023. Hu: Parallel Sequencing and Assembly Line Problems, 1961.

    Example:
        options: {word_bits: 8}
        parameters: {length: [4, 16], devices: [1, 4], sum: [chain, tree], schedule: [level, list]}
        objectives: {latency: minimize, efficiency: maximize}

    Raises:
        SpecError: an option is invalid.
    """

    gate_time: float | str = "33 ms"
    launch_time: float | str = "1 ms"
    exchange_time: float | str = "2 ms"
    length: float | None = None
    word_bits: float | None = None
    devices: float | None = None
    slots: float | None = None
    schedule: str | None = None

    def __post_init__(self) -> None:
        self._gate_s = amount("gate_time", self.gate_time, "s", least=1e-12)
        self._launch_s = amount("launch_time", self.launch_time, "s", least=0.0)
        self._exchange_s = amount("exchange_time", self.exchange_time, "s", least=0.0)
        super().__post_init__()

    def evaluate(self, batch: Batch) -> Metrics:
        """Return the metrics of n designs, scheduling equal ones once."""
        return row_by_row(self._readings.rows(batch), self.provides, self._compute)

    def _compute(self, design: Mapping[str, float]) -> Mapping[str, float] | str:
        length, bits, devices, slots = (
            int(design[name]) for name in ("length", "word_bits", "devices", "slots")
        )
        about = length * 3 * bits * bits
        if about > _MOST_GATES:
            return f"about {about:,} gates: more than {_MOST_GATES:,}"
        key = length, bits, bool(design["sum"] == _SUMS.index("tree"))
        graph = dot_product(length, bits, tree=key[2])
        by_level = design["schedule"] == _SCHEDULES.index("level")
        times = [self._time_s(key, slots, count, by_level=by_level) for count in (devices, 1)]
        gates, depth = len(graph.levels), graph.depth
        return {
            "latency": times[0],
            "lower_bound": max(depth, -(-gates // (devices * slots))) * self._gate_s,
            "gates": float(gates),
            "depth": float(depth),
            "mean_width": gates / depth,
            "efficiency": times[1] / times[0] / devices,
        }

    def _time_s(
        self, key: tuple[int, int, bool], slots: int, devices: int, *, by_level: bool
    ) -> float:
        step_s = self._gate_s + self._launch_s + (self._exchange_s if devices > 1 else 0.0)
        if not by_level:
            return count_list_steps(key, devices * slots) * step_s
        widths = dot_product(key[0], key[1], tree=key[2]).widths
        steps = np.ceil(widths / (devices * slots)).sum()
        return float(steps * self._gate_s + len(widths) * (step_s - self._gate_s))
