"""Import of an ONNX model as a layer table, from the shapes of its operators."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from math import prod
from pathlib import Path

from dse.errors import SpecError
from dse_evaluators.workloads.layer_table import LayerTable, Lookup
from dse_evaluators.workloads.layers import Layer, product
from dse_evaluators.workloads.onnx_graph import Graph, OnnxNode, Shape, graph_of

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


def table_of_onnx(path: Path, sizes: Mapping[str, int]) -> LayerTable:
    """Return the layer table of a model whose open (dynamic) axes have these sizes.

    Convolutions, matrix products and recurrent cells are layers; a product is unweighted if both
    sides depend on the input. The images of a batch are stacked vertically. A convolution whose
    strides differ becomes a matrix product with one row per window, which ignores that windows
    overlap; dilation is ignored. Rows gathered from a stored matrix are embedding lookups. No layer
    is marked as one that structured pruning makes narrower. ``others`` counts all other stored
    floating-point tensors of more than one element.

    Raises:
        PluginError: onnx is not installed.
        SpecError: the file is not a model, an open axis has no size or does not exist, an operator
            is not supported, or a shape cannot be inferred.
    """
    try:
        changed = path.stat().st_mtime_ns
    except (OSError, ValueError) as error:  # ValueError: a name with a null byte
        raise SpecError(f"the model {str(path)!r} cannot be read: {error}") from error
    return _table(path.resolve(), changed, tuple(sorted(sizes.items())))


@lru_cache(maxsize=32)
def _table(path: Path, _changed: int, sizes: tuple[tuple[str, int], ...]) -> LayerTable:
    graph = graph_of(path, dict(sizes))
    _check_operators(graph, path.name)
    layers: list[Layer] = []
    picks: list[tuple[OnnxNode, frozenset[str]]] = []
    learnt: set[str] = set()
    for node in graph.nodes:
        if node.operator in _RIGHT and node.outputs[0] not in graph.made_of:
            layers += _READERS[node.operator](graph, node)
            learnt.update(*(graph.made_of.get(name, ()) for name in _operands(node)))
        elif node.operator == "Gather" and _picks_rows(graph, node):
            picks.append((node, graph.made_of[node.inputs[0]]))
    lookups = tuple(_lookup(graph, node, shared=bool(made & learnt)) for node, made in picks)
    counted = learnt.union(*(made for _, made in picks))
    others = sum(n for name, n in graph.stored.items() if name not in counted and n > 1)
    return LayerTable(layers=tuple(layers), lookups=lookups, others=others)


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
    (images, channels, *_), (filters, _, *window), (_, _, *after) = _shapes(graph, node)
    groups = node.number("group", 1)
    strides = node.attributes.get("strides", (1,) * len(window))
    moving = {stride for stride, side in zip(strides, after, strict=True) if side > 1} or {1}
    if len(window) > 2 or len(moving) > 1:
        rows = images * prod(after)
        return [_plain(node.name, (rows, 1), (1, 1), (channels * prod(window), filters), groups)]
    (stride,) = moving
    tall, wide = (*after, 1)[:2]
    window_tall, window_wide = (*window, 1)[:2]
    seen = ((images * tall - 1) * stride + window_tall, (wide - 1) * stride + window_wide)
    shape = (window_tall, window_wide)
    return [_plain(node.name, seen, shape, (channels, filters), groups, stride)]


def _build_transpose(graph: Graph, node: OnnxNode) -> list[Layer]:
    """Build a transposed convolution as a matrix product with a row per input pixel.

    The product has a column per output channel and filter tap.
    """
    (images, channels, *before), (_, filters, *window), _ = _shapes(graph, node)
    groups = node.number("group", 1)
    outputs = filters * groups * prod(window)
    return [_plain(node.name, (images * prod(before), 1), (1, 1), (channels, outputs), groups)]


def _plain(
    name: str,
    image: tuple[int, int],
    window: tuple[int, int],
    ends: tuple[int, int],
    groups: int,
    stride: int = 1,
) -> Layer:
    return Layer(
        name=name,
        height=image[0],
        width=image[1],
        filter_height=window[0],
        filter_width=window[1],
        channels=ends[0],
        filters=ends[1],
        stride=stride,
        groups=groups,
        pruned_inputs=False,
        pruned_outputs=False,
    )


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
    """Build the matrix product of operands with these shapes.

    The product has a copy per matrix on the right-hand side; all left-hand matrices that are
    multiplied by the same right-hand matrix are stacked as rows. If only the left-hand side is a
    parameter, both sides are transposed and swapped.
    """
    name, learnt = node.name, [side in graph.made_of for side in _operands(node)]
    if learnt == [True, False]:
        left, right = (*right[:-2], right[-1], right[-2]), (*left[:-2], left[-1], left[-2])
    places = max(len(left), len(right)) - 2
    pairs = zip(_leading(left, places), _leading(right, places), strict=True)
    copies = prod(right[:-2])
    rows = prod(max(pair) for pair in pairs) // copies * left[-2]
    return [product(name, rows, left[-1], right[-1], copies=copies, weighted=any(learnt))]


def _leading(shape: Shape, places: int) -> Shape:
    """Return a shape's axes before the last two, padded with leading 1s to ``places`` axes."""
    lead = shape[:-2]
    return (*(1,) * (places - len(lead)), *lead)


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
