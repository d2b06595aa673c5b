"""The evaluator ``scaling.elastic-precision``: storage of models that mix two bit widths."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from dse.core.metric import Failure, Metric, Metrics
from dse.core.values import Floats
from dse_evaluators.declared_evaluator import DeclaredEvaluator
from dse_evaluators.reading_table import NumberInput, Reading
from dse_evaluators.readings import look_up_row

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

_INPUTS: Mapping[str, Reading] = {
    **dict.fromkeys(("wide_bits", "narrow_bits"), NumberInput(1, 32)),
    "group": NumberInput(0, 1 << 20, default=0.0, whole=True),
}

_ORDER = Failure(kind="infeasible", reason="narrow_bits is not less than wide_bits")


class ElasticPrecision(DeclaredEvaluator, reads=_INPUTS, provides=_METRICS, version="1"):
    """Bytes to store a model in two bit widths, and the steps in size between its hybrids.

    A hybrid has its first modules (linear layers) narrow and the others wide: modules switch from
    wide to narrow one at a time, so the memory footprint falls in as many steps as there are
    modules. ``storage`` is the size of both widths of all modules; ``ensemble_storage`` that of
    every hybrid stored as a separate model. ``switch_step`` is the step between the all-wide and
    the all-narrow model, and ``bit_step`` that of removing one bit from every weight. Reads
    wide_bits, narrow_bits and group, the number of weights that share a 16-bit scale (0: scales are
    not counted).

    Args:
        model: ``minilm`` or ``llama-2-7b``.

    Limits:
        Quality is not modelled.

    Error:
        None: bytes are counted.

    Example:
        options: {model: minilm}
        parameters: {wide_bits: [6, 8], narrow_bits: [2.5, 3], group: [64, 128]}

    Source:
        Chai et al.: FlexQuant: Elastic Quantization Framework for Locally Hosted LLM on Edge
        Devices, 2025.
    """

    model: str = "llama-2-7b"

    def __post_init__(self) -> None:
        self._modules = look_up_row("model", self.model, MODULES)
        super().__post_init__()

    def compute(self, inputs: Mapping[str, Floats]) -> Metrics:
        """Return storage and step sizes of n designs in bytes, (n,) by name, with faults."""
        weights = np.array(self._modules, dtype=float)
        group = inputs["group"]
        scale_bits = np.where(group > 0, 16 / np.maximum(group, 1), 0.0)
        wide, narrow = (_bytes(inputs[name], scale_bits) for name in ("wide_bits", "narrow_bits"))
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
                "bit_step": np.full_like(group, total / 8),
                "largest": wide * total,
                "least": narrow * total,
            },
            failures=dict.fromkeys(off, _ORDER),
        )


def _bytes(bits: Floats, scale_bits: Floats) -> Floats:
    """Return the bytes per weight of a bit width, including its share of the group's scale."""
    return (bits + scale_bits) / 8
