"""The evaluator ``scaling.resnet-cost``: compute and memory cost of a quantised ResNet."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from dse.core.batch import Batch
from dse.core.metric import Metric, Metrics
from dse.core.values import Floats, Value
from dse.errors import SpecError, nearest
from dse_evaluators.declared_evaluator import DeclaredEvaluator
from dse_evaluators.reading_table import CheckedInput, NumberInput, Reading
from dse_evaluators.scaling.bottleneck import BLOCKS, work

_METRICS = (
    Metric(name="quadratic", goal="minimize"),
    Metric(name="linear", goal="minimize"),
    Metric(name="memory", unit="B", goal="minimize"),
)

PRODUCT_BITS = (4.0, 8.0, 16.0)
"""Operand widths of the linear model, in bits; others are rounded up to the next width."""


def _check_depth(name: str, value: Value) -> None:  # noqa: ARG001 - a check has the input's name
    if value not in BLOCKS:
        raise SpecError(f"there is no ResNet-{value}", hint=nearest("", map(str, BLOCKS)))


def _check_bits(name: str, value: Value) -> None:
    if not 0 < float(value) <= PRODUCT_BITS[-1]:
        raise SpecError(f"{name} cannot be {value}", hint="up to 16 bits are modelled")


_INPUTS: Mapping[str, Reading] = {
    "depth": CheckedInput(_check_depth),
    "width": NumberInput(0.01, 100),
    **dict.fromkeys(("weight_bits", "activation_bits"), CheckedInput(_check_bits)),
    "edge_bits": CheckedInput(_check_bits, default=0.0),
}


class ResnetCost(DeclaredEvaluator, reads=_INPUTS, provides=_METRICS, version="1"):
    """Cost of a quantised ResNet for one image of 224 x 224.

    ``quadratic`` is the sum over multiplications of the product of the operands' bits, a model of
    the area of multipliers. ``linear`` is the sum of the wider operand's bits, rounded up to 4, 8
    or 16, a model of the time on a GPU whose throughput doubles as bits halve. ``memory`` is the
    size of the weights. Batch normalisation, pooling and additions cost nothing.

    Inputs:
        depth: 26, 50, 101 or 152.
        width: factor of all channels.
        edge_bits: bits of both operands of the first and the last layer; by default the bits
            of the other layers.

    Error:
        Agrees with the eight numbers that the AQT library's tests print for ResNet-50.

    Example:
        parameters:
            {depth: [26, 50], width: [0.5, 1.0], weight_bits: [4, 8], activation_bits: [4, 8]}

    Source:
        Abdolrashidi et al.: Pareto-Optimal Quantized ResNet Is Mostly 4-bit, 2021, section 3; the
        authors' cost functions of the AQT library define what counts.
    """

    def evaluate(self, batch: Batch) -> Metrics:
        """Return the compute and memory costs of n designs, (n,) by name."""
        pairs = zip(batch["depth"].tolist(), batch["width"].tolist(), strict=True)
        works = [work(depth, width) for depth, width in pairs]
        macs = np.array([[part.macs for part in parts] for parts in works], dtype=float)  # (n, 2)
        weights = np.array([[part.weights for part in parts] for parts in works], dtype=float)
        weight_bits = _with_edges(batch, "weight_bits")  # (n, 2)
        activation_bits = _with_edges(batch, "activation_bits")  # (n, 2)
        wider = np.maximum(weight_bits, activation_bits)
        product_bits = np.array(PRODUCT_BITS)[np.searchsorted(PRODUCT_BITS, wider)]
        return Metrics(
            columns={
                "quadratic": (macs * weight_bits * activation_bits).sum(axis=1),
                "linear": (macs * product_bits).sum(axis=1),
                "memory": (weights * weight_bits).sum(axis=1) / 8,
            }
        )


def _with_edges(batch: Batch, name: str) -> Floats:
    """Return the bits of inner layers (column 0) and of the first and last layer (1), (n, 2)."""
    inner = batch[name].astype(float)
    edges = batch.get("edge_bits", 0).astype(float)
    return np.column_stack([inner, np.where(edges > 0, edges, inner)])
