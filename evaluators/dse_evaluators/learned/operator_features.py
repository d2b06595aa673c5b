"""Features of a network's ONNX graph: work of each kind of operator, which adds up to its time."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import prod
from pathlib import Path

import numpy as np

from dse.core.values import Floats
from dse.errors import SpecError
from dse_evaluators.workloads.catalogue import ONNX, axis_sizes, layers_of
from dse_evaluators.workloads.layers import Layer
from dse_evaluators.workloads.onnx_graph import Graph, OnnxNode, OpenAxes, graph_of

_NORMAL = frozenset(
    (
        "BatchNormalization",
        "GroupNormalization",
        "InstanceNormalization",
        "LayerNormalization",
        "LogSoftmax",
        "LpNormalization",
        "ReduceMean",
        "ReduceSum",
        "Softmax",
    )
)
_SLOW = frozenset(("Erf", "Exp", "Gelu", "Log", "Pow", "Sigmoid", "Sqrt", "Tanh"))
_SHAPES = frozenset(
    (
        "Constant",
        "ConstantOfShape",
        "Flatten",
        "Identity",
        "Range",
        "Reshape",
        "Shape",
        "Squeeze",
        "Unsqueeze",
    )
)
_MOVES = frozenset(
    (
        "Concat",
        "Expand",
        "Gather",
        "Pad",
        "Resize",
        "Slice",
        "Split",
        "Tile",
        "Transpose",
        "Upsample",
    )
)
_POOLS = frozenset(("AveragePool", "GlobalAveragePool", "GlobalMaxPool", "MaxPool"))

KINDS = ("conv", "pointwise", "grouped", "matmul", "product", "pool", "normal", "slow", "move")
"""Kinds of operators that take time; all others count as ``simple``."""

_MEASURES = ("count", "macs", "elements", "weights")
NAMES = tuple(f"{kind} {one}" for kind in (*KINDS, "simple") for one in _MEASURES)
"""Name of each feature."""


def operator_features(path: Path, axes: OpenAxes | None = None) -> Floats:
    """Return the work of an ONNX file by kind of operator, (f,), in the order of ``NAMES``.

    For each kind: number of operators, multiply-accumulates, elements of activations that are read
    and written, and elements of stored tensors that are read.

    Args:
        path: the file.
        axes: sizes of open axes.

    Raises:
        PluginError: onnx is not installed.
        SpecError: the file is not a model, or an open axis has no size.
    """
    axes = axes or OpenAxes(sizes={})
    try:
        changed = path.stat().st_mtime_ns
    except OSError as error:
        raise SpecError(f"the network {str(path)!r} cannot be read: {error.strerror}") from error
    key = tuple(sorted(axes.sizes.items()))
    return np.array(_read(path.resolve(), changed, key))


@lru_cache(maxsize=4_096)
def _read(path: Path, _changed: int, sizes: tuple[tuple[str, int], ...]) -> tuple[float, ...]:
    graph = graph_of(path, OpenAxes(sizes=dict(sizes)))
    found = dict.fromkeys(NAMES, 0.0)
    for node in graph.nodes:
        if node.operator in _SHAPES or all(one in graph.made_of for one in node.outputs):
            continue
        kind = _kind(graph, node)
        activations = [one for one in node.inputs if one and one not in graph.made_of]
        stored = [one for one in node.inputs if one in graph.made_of]
        found[f"{kind} count"] += 1
        found[f"{kind} macs"] += _macs(graph, node)
        found[f"{kind} elements"] += _elements(graph, [*activations, *node.outputs])
        found[f"{kind} weights"] += _elements(graph, stored)
    return tuple(found.values())


def features_of(network: str) -> Floats:
    """Return the work of a network, (f,): an ONNX file, or a workload such as ``resnet18``.

    A workload that is no ONNX file has convolutions and matrix products only.

    Raises:
        PluginError: onnx is not installed.
        SpecError: there is no such file or workload, or an open axis has no size.
    """
    text = network.strip()
    name, _, rest = text.partition(":")
    if name == ONNX:
        folder, slash, last = rest.rpartition("/")
        file, *items = last.split(",")
        axes = OpenAxes(sizes=axis_sizes(text, items))
        return operator_features(Path(f"{folder}{slash}{file}"), axes)
    if text.endswith(".onnx"):
        return operator_features(Path(text))
    return _layer_features(layers_of(text))


def _layer_features(layers: Sequence[Layer]) -> Floats:
    found = dict.fromkeys(NAMES, 0.0)
    for one in layers:
        kind = _kind_of_layer(one)
        inputs = one.height * one.width * one.channels
        outputs = one.output_height * one.output_width * one.filters
        right = 0 if one.weighted else one.weights_per_filter * one.filters
        found[f"{kind} count"] += 1
        found[f"{kind} macs"] += one.macs
        found[f"{kind} elements"] += (inputs + outputs + right) * one.copies
        found[f"{kind} weights"] += one.weights
    return np.array([*found.values()])


def _kind_of_layer(layer: Layer) -> str:
    if not layer.weighted:
        return "product"
    if layer.groups > 1:
        return "grouped"
    if layer.filter_height * layer.filter_width > 1:
        return "conv"
    return "matmul" if layer.width == 1 else "pointwise"


def _kind(graph: Graph, node: OnnxNode) -> str:
    name = node.operator
    if name == "Conv":
        if node.number("group", 1) > 1:
            return "grouped"
        return "pointwise" if prod(_shape(graph, node.inputs[1])[2:]) == 1 else "conv"
    if name in ("MatMul", "Gemm"):
        return "matmul" if node.inputs[1] in graph.made_of else "product"
    for kind, names in (("pool", _POOLS), ("normal", _NORMAL), ("slow", _SLOW), ("move", _MOVES)):
        if name in names:
            return kind
    return "simple"


def _macs(graph: Graph, node: OnnxNode) -> float:
    """Return the multiply-accumulates of a convolution or a matrix product; else 0."""
    output = prod(_shape(graph, node.outputs[0]))
    if node.operator == "Conv":
        return float(output * prod(_shape(graph, node.inputs[1])[1:]))
    if node.operator in ("MatMul", "Gemm"):
        inner = _shape(graph, node.inputs[0])
        return float(output * (inner[-2] if node.number("transA", 0) else inner[-1]))
    return 0.0


def _shape(graph: Graph, name: str) -> tuple[int, ...]:
    return tuple(graph.shapes.get(name, ()))


def _elements(graph: Graph, names: Sequence[str]) -> float:
    return float(sum(prod(_shape(graph, one)) for one in names if one))
