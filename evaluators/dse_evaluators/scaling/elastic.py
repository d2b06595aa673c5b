"""The evaluator ``scaling.elastic-precision``: storage of models that mix two bit widths."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from dse.core.batch import Batch
from dse.core.metric import Fault, Kind, Metric, Metrics
from dse.core.values import Floats, Value
from dse_evaluators.readings import check_readings, look_up_row, number

_METRICS = (
    Metric(name="storage", unit="B", goal="minimize"),
    Metric(name="ensemble_storage", unit="B"),
    Metric(name="mean_step", unit="B", goal="minimize"),
    Metric(name="largest_step", unit="B", goal="minimize"),
    Metric(name="switch_step", unit="B"),
    Metric(name="bit_step", unit="B"),
    Metric(name="largest", unit="B"),
    Metric(name="least", unit="B"),
)


def _blocks(count: int, *modules: int) -> tuple[int, ...]:
    return modules * count


MODULES: Mapping[str, tuple[int, ...]] = {
    # Wang et al.: MiniLM, 2020: 384 wide, 1,536 in the feed-forward part; 6 of its 12 blocks.
    "minilm": _blocks(6, *[384 * 384] * 4, *[384 * 1536] * 2),
    # Touvron et al.: Llama 2, 2023: 4,096 wide, 11,008 in the feed-forward part; 32 blocks.
    "llama-2-7b": _blocks(32, *[4096 * 4096] * 4, *[4096 * 11008] * 3),
}
"""Number of weights of each linear layer, by model."""

_ORDER = Fault(kind="infeasible", reason="narrow_bits is not less than wide_bits")


@dataclass(kw_only=True, eq=False)
class ElasticPrecision:
    """Bytes to store a model in two bit widths, and the steps in size between its hybrids.

    Modules (linear layers) switch from wide to narrow one at a time, so that the memory footprint
    falls in as many steps as there are modules. ``storage`` is the size of both widths of all
    modules; ``ensemble_storage`` that of every hybrid stored as a separate model. ``switch_step``
    is the step between the all-wide and the all-narrow model, and ``bit_step`` that of removing
    one bit from every weight. Reads wide_bits, narrow_bits and group, the number of weights that
    share a 16-bit scale (0: scales are not counted).

    Args:
        model: ``minilm`` or ``llama-2-7b``.

    Source:
        Chai et al.: FlexQuant: Elastic Quantization Framework for Locally Hosted LLM on Edge
        Devices, 2025.
    """

    model: str = "llama-2-7b"
    reads: frozenset[str] = field(init=False)
    optional: frozenset[str] = field(init=False)
    units: Mapping[str, str] = field(init=False, default_factory=dict)
    provides: Mapping[str, Metric] = field(init=False)
    kind: Kind = field(init=False, default="modelled")
    pure = True
    version: str = field(init=False, default="1")

    def __post_init__(self) -> None:
        self._modules = look_up_row("model", self.model, MODULES)
        self.reads = frozenset({"wide_bits", "narrow_bits"})
        self.optional = frozenset({"group"})
        self.provides = {metric.name: metric for metric in _METRICS}

    def check_values(self, values: Mapping[str, Sequence[Value]]) -> None:
        bits = dict.fromkeys(("wide_bits", "narrow_bits"), number(1, 32))
        check_readings(values, {**bits, "group": number(0, 1 << 20, whole=True)})

    def evaluate(self, batch: Batch) -> Metrics:
        """Return the storage and the steps, in bytes, of n designs."""
        weights = np.array(self._modules, dtype=float)
        group = batch.get("group", 0).astype(float)
        scale_bits = np.where(group > 0, 16 / np.maximum(group, 1), 0.0)
        wide, narrow = (_bytes(batch[name], scale_bits) for name in ("wide_bits", "narrow_bits"))
        steps = np.outer(wide - narrow, weights)  # (n, modules)
        total = weights.sum()
        hybrids = len(weights) + 1
        off = np.flatnonzero(steps[:, 0] <= 0).tolist()
        return Metrics(
            columns={
                "storage": (wide + narrow) * total,
                # Hybrids switch modules in the order of the model.
                "ensemble_storage": wide * total * hybrids - np.cumsum(steps, axis=1).sum(axis=1),
                "mean_step": steps.mean(axis=1),
                "largest_step": steps.max(axis=1),
                "switch_step": steps.sum(axis=1),
                "bit_step": np.full(len(batch), total / 8),
                "largest": wide * total,
                "least": narrow * total,
            },
            faults=dict.fromkeys(off, _ORDER),
        )


def _bytes(bits: Floats, scale_bits: Floats) -> Floats:
    """Return the bytes per weight, including its part of the scale."""
    return (bits.astype(float) + scale_bits) / 8
