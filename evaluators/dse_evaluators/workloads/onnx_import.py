"""Import of an ONNX model as a layer table, from the shapes of its operators."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from math import prod
from pathlib import Path

from dse.errors import SpecError
from dse_evaluators.workloads.layer_table import LayerTable, Lookup, ReadLayers
from dse_evaluators.workloads.layers import Layer, product
from dse_evaluators.workloads.onnx_graph import Graph, OnnxNode, OpenAxes, Shape, graph_of
from dse_evaluators.workloads.shaped_layers import (
    convolve_shapes,
    multiply_shapes,
    transpose_convolution,
)

_RIGHT: Mapping[str, int] = {
    "Conv": 1,
    "ConvInteger": 1,
    "ConvTranspose": 1,
    "Gemm": 1,
    "MatMul": 1,
    "MatMulInteger": 1,
    "QLinearConv": 3,
    "QLinearMatMul": 3,
    "GRU": 1,
    "LSTM": 1,
    "RNN": 1,
}
"""Supported operators, with the index of the input that is the right-hand side."""

_UNREAD = ("Attention", "DeformConv", "Einsum", "If", "Loop", "RotaryEmbedding", "Scan")
"""Unsupported operators that multiply or may contain operators that do."""


_MOVES = (  # noqa: SIM905 - one word a line is longer
    "Cast Concat Constant ConstantOfShape DepthToSpace Dropout Expand Flatten Gather "
    "GatherElements GatherND Identity Pad Range Reshape Resize Shape Size Slice SpaceToDepth "
    "Split Squeeze Tile Transpose Unsqueeze"
).split()
"""Operators that only move numbers or describe shapes."""

_MOST_LISTED = 8


def read_onnx_layers(path: Path, axes: OpenAxes) -> ReadLayers:
    """Return the layers of a model whose open (dynamic) axes have these sizes.

    Convolutions, matrix products and recurrent cells are layers; a product is unweighted if both
    sides depend on the input. The images of a batch are stacked vertically. A convolution whose
    strides differ becomes a matrix product with one row per window, which ignores that windows
    overlap; dilation is ignored. Rows gathered from a stored matrix are embedding lookups. No layer
    is marked as one that structured pruning makes narrower. ``others`` counts all other stored
    floating-point tensors of more than one element.

    Args:
        path: the file.
        axes: the sizes of open axes.

    Raises:
        PluginError: onnx is not installed.
        SpecError: the file is not a model, an open axis has no size or does not exist, an operator
            is not supported, or a shape cannot be inferred.
    """
    try:
        changed = path.stat().st_mtime_ns
    except (OSError, ValueError) as error:  # ValueError: a name with a null byte
        raise SpecError(f"the model {str(path)!r} cannot be read: {error}") from error
    sizes, shapes = tuple(sorted(axes.sizes.items())), tuple(sorted(axes.shapes.items()))
    return _read(path.resolve(), changed, sizes, shapes, axes.batch)


@lru_cache(maxsize=32)
def _read(
    path: Path,
    _changed: int,
    sizes: tuple[tuple[str, int], ...],
    shapes: tuple[tuple[str, Shape], ...],
    batch: int | None,
) -> ReadLayers:
    axes = OpenAxes(sizes=dict(sizes), shapes=dict(shapes), batch=batch)
    graph = graph_of(path, axes)
    _check_operators(graph, path.name)
    layers: list[Layer] = []
    picks: list[tuple[OnnxNode, frozenset[str]]] = []
    learnt: set[str] = set()
    stored: list[frozenset[str]] = []
    nodes: list[int] = []
    for at, node in enumerate(graph.nodes):
        if node.operator in _RIGHT and node.outputs[0] not in graph.made_of:
            layers += _READERS[node.operator](graph, node)
            made = [graph.made_of.get(name, frozenset[str]()) for name in _operands(node)]
            learnt.update(*made)
            stored += [frozenset[str]().union(*made)] * (len(layers) - len(stored))
            nodes += [at] * (len(layers) - len(nodes))
        elif node.operator == "Gather" and _picks_rows(graph, node):
            picks.append((node, graph.made_of[node.inputs[0]]))
    lookups = tuple(_lookup(graph, node, shared=bool(made & learnt)) for node, made in picks)
    counted = learnt.union(*(made for _, made in picks))
    others = sum(n for name, n in graph.stored.items() if name not in counted and n > 1)
    table = LayerTable(layers=tuple(layers), lookups=lookups, others=others)
    return ReadLayers(
        table=table,
        notes=tuple(_notes(graph, path.name)),
        stored=tuple(stored),
        nodes=tuple(nodes),
    )


def _notes(graph: Graph, file: str) -> Iterator[str]:
    """Yield sentences on what the layers of a model leave out."""
    if graph.batch_axes:
        listed = ", ".join(graph.batch_axes)
        yield f"the layers of {file} are those of one example: its open axis {listed} counts as 1"
    rest = Counter(
        node.operator
        for node in graph.nodes
        if node.operator not in (*_RIGHT, *_MOVES)
        and any(name not in graph.made_of for name in node.outputs)
    )
    if rest:
        listed = ", ".join(f"{count} {name}" for name, count in rest.most_common(_MOST_LISTED))
        more = f", and {len(rest) - _MOST_LISTED} more kinds" if len(rest) > _MOST_LISTED else ""
        yield f"operators of {file} that are not matrix products are no layers: {listed}{more}"
    dilated = [node.name for node in graph.nodes if max(node.attributes.get("dilations", (1,))) > 1]
    if dilated:
        yield f"the dilation of layers of {file} is ignored: {', '.join(dilated[:_MOST_LISTED])}"


def _check_operators(graph: Graph, file: str) -> None:
    strange = {
        node.operator
        for node in graph.nodes
        if node.operator in _UNREAD or node.domain not in ("", "ai.onnx")
    }
    if strange:
        raise SpecError(
            f"{file} has operators that cannot be read as layers: {', '.join(sorted(strange))}",
            hint="export it with the plain operators MatMul, Gemm and Conv",
        )


def _operands(node: OnnxNode) -> tuple[str, ...]:
    """Return the names of a product's left and right operand.

    For a recurrent cell these are the inputs and both weight matrices.
    """
    right = _RIGHT[node.operator]
    more = (node.inputs[2],) if node.operator in ("GRU", "LSTM", "RNN") else ()
    return (node.inputs[0], node.inputs[right], *more)


def _shape(graph: Graph, node: OnnxNode, signal: str) -> Shape:
    if signal not in graph.shapes:
        raise SpecError(
            f"the shape of {signal!r} at {node.name!r} cannot be inferred",
            hint="shapes there do not match, or depend on the values of the inputs",
        )
    return graph.shapes[signal]


def _shapes(graph: Graph, node: OnnxNode) -> tuple[Shape, Shape, Shape]:
    """Return the shapes of a node's left operand, right operand and result."""
    left, right, *_ = _operands(node)
    return (
        _shape(graph, node, left),
        _shape(graph, node, right),
        _shape(graph, node, node.outputs[0]),
    )


def _convolution(graph: Graph, node: OnnxNode) -> list[Layer]:
    images, filters, results = _shapes(graph, node)
    strides = node.attributes.get("strides")
    groups = node.number("group", 1)
    return [convolve_shapes(node.name, images, filters, results, strides=strides, groups=groups)]


def _build_transpose(graph: Graph, node: OnnxNode) -> list[Layer]:
    images, filters, _ = _shapes(graph, node)
    return [transpose_convolution(node.name, images, filters, groups=node.number("group", 1))]


def _gemm(graph: Graph, node: OnnxNode) -> list[Layer]:
    left, right, _ = _shapes(graph, node)
    one = left[::-1] if node.number("transA", 0) else left
    other = right[::-1] if node.number("transB", 0) else right
    return _product(graph, node, one, other)


def _matmul(graph: Graph, node: OnnxNode) -> list[Layer]:
    left, right, _ = _shapes(graph, node)
    one = (1, *left) if len(left) == 1 else left
    other = (*right, 1) if len(right) == 1 else right
    return _product(graph, node, one, other)


def _product(graph: Graph, node: OnnxNode, left: Shape, right: Shape) -> list[Layer]:
    learnt = [side in graph.made_of for side in _operands(node)]
    return [
        multiply_shapes(node.name, left, right, left_weighted=learnt[0], right_weighted=learnt[1])
    ]


def _recurrent(graph: Graph, node: OnnxNode) -> list[Layer]:
    """Build a recurrent cell's products with its inputs and with its hidden state.

    Each product has a row per step and sequence.
    """
    (steps, batch, inputs), (ways, outputs, _), _ = _shapes(graph, node)
    kept = _shape(graph, node, node.inputs[2])[-1]
    rows = steps * batch
    return [
        product(f"{node.name}-inputs", rows, inputs, outputs, copies=ways),
        product(f"{node.name}-recurrent", rows, kept, outputs, copies=ways),
    ]


def _picks_rows(graph: Graph, node: OnnxNode) -> bool:
    table = node.inputs[0]
    flat = len(graph.shapes.get(table, ())) == 2 and node.number("axis", 0) == 0
    return flat and table in graph.made_of and node.outputs[0] not in graph.made_of


def _lookup(graph: Graph, node: OnnxNode, *, shared: bool) -> Lookup:
    rows, width = _shape(graph, node, node.inputs[0])
    picked = prod(_shape(graph, node, node.inputs[1]))
    return Lookup(name=node.name, rows=rows, width=width, picked=picked, shared=shared)


_READERS: Mapping[str, Callable[[Graph, OnnxNode], list[Layer]]] = {
    "Conv": _convolution,
    "ConvInteger": _convolution,
    "ConvTranspose": _build_transpose,
    "Gemm": _gemm,
    "MatMul": _matmul,
    "MatMulInteger": _matmul,
    "QLinearConv": _convolution,
    "QLinearMatMul": _matmul,
    "GRU": _recurrent,
    "LSTM": _recurrent,
    "RNN": _recurrent,
}
