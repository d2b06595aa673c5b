"""Places where a network can be cut in two, and the tensors that cross each cut."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from dse.core.values import Floats, Ints
from dse.errors import EvaluationError, SpecError
from dse_evaluators.workloads.layer_table import ReadLayers
from dse_evaluators.workloads.layers import Layer
from dse_evaluators.workloads.onnx_graph import Graph, OpenAxes, Shape, graph_of
from dse_evaluators.workloads.onnx_import import read_onnx_layers
from dse_evaluators.workloads.own.own_workload import LayeredWorkload

_CHAINS = ("digits-cnn", "mnist-cnn", "vgg16", "alexnet", "mobilenetv1", "paradnn-fc")
"""Workloads of the catalogue that are chains: the result of a layer goes to the next one only."""

_NO_GRAPH = ("movielens-dlrm", "dlrm-a", "dlrm-b", "sd-unet")
"""Workloads of the catalogue whose layers have inputs that a layer table does not state."""

_EXPORT = "export the model to ONNX: workload: net.onnx"

_IMAGE = 3 * 224 * 224
_IMAGE_NETWORKS = ("resnet", "mobilenet", "vgg16", "alexnet", "vit-")

_EXAMPLES = 3
"""Number of examples on which the graph of an exported module is compared with the module."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CutPoints:
    """Places at which a network of l layers can be split between a device and a server.

    There are c cuts, from all layers on the server to all on the device. The first cut is before
    the first layer, the last one after the last layer; a cut has whole layers on both sides.
    Tensors that are computed before a cut and needed after it cross the cut, including the skip
    connections of residual blocks. Where operators that are no layers stand between two layers,
    such as pooling, the cut is at the operator where the fewest elements cross.
    """

    layers: tuple[Layer, ...]
    """Layers of the network in order."""
    names: tuple[str, ...]
    """Name of the last layer on the device at each cut, (c,); ``input`` for none."""
    before: Ints  # (c,), layers on the device
    features: Floats  # (c,), elements of computed tensors that cross
    inputs: Floats  # (c,), elements of the network's own inputs that cross


def cut_points(workload: LayeredWorkload) -> CutPoints:
    """Return the places where a workload can be cut.

    The cuts of an ONNX file are all those of its graph, in the order of its operators. A module is
    exported to ONNX first. The layer tables of the catalogue and of language models have no graph:
    chains are cut after each layer, residual networks and transformers between blocks.

    Args:
        workload: the workload.

    Raises:
        SpecError: the network has no place to cut, or its graph is not known.
        EvaluationError: the user's function fails, or the module cannot be exported.
        PluginError: onnx is not installed.
    """
    origin = workload.origin
    if workload.is_named:
        found = _cut_table(workload.label, workload.layers)
    elif isinstance(origin, Path) and origin.suffix == ".onnx":
        found = _cut_graph(origin, workload.open_axes)
    elif isinstance(origin, Path | Mapping):
        found = _cut_table(workload.label, workload.layers)
    else:
        found = _cut_module(origin, workload.label, tuple(sorted(workload.shapes.items())))
    if len(found.names) < 3:
        raise SpecError(
            f"{workload.label} has no place to cut",
            hint="a network of at least two layers, or blocks, with no operator that spans them",
        )
    return found


def _cut_table(label: str, layers: Sequence[Layer]) -> CutPoints:
    name = label.partition(":")[0].strip().lower()
    if name in _NO_GRAPH:
        raise SpecError(f"no graph of {name} is known, so it cannot be cut", hint=_EXPORT)
    if name in _CHAINS:
        ends = list(range(1, len(layers)))
    else:
        blocks = [layer.name.rpartition("-")[0] or layer.name for layer in layers]
        ends = [at for at in range(1, len(layers)) if blocks[at] != blocks[at - 1]]
    image = _IMAGE if name.startswith(_IMAGE_NETWORKS) else _count_inputs(layers[0])
    tokens = layers[0].height if name not in _CHAINS and layers[0].filter_height == 1 else image
    crossing = [min(_count_outputs(layers[at - 1]), _count_inputs(layers[at])) for at in ends]
    return CutPoints(
        layers=tuple(layers),
        names=("input", *(layers[at - 1].name for at in ends), layers[-1].name),
        before=np.array([0, *ends, len(layers)]),
        features=np.array([0.0, *crossing, 0.0]),
        inputs=np.array([float(tokens), *[0.0] * (len(ends) + 1)]),
    )


def _count_outputs(layer: Layer) -> int:
    return layer.output_height * layer.output_width * layer.filters * layer.copies


def _count_inputs(layer: Layer) -> int:
    """Return the elements of a layer's input without padding, if its windows cover it evenly."""
    pixels = layer.output_height * layer.output_width * layer.stride**2
    return (pixels if layer.width > 1 else layer.output_height) * layer.channels


@lru_cache(maxsize=32)
def _cut_module(origin: Any, label: str, shapes: tuple[tuple[str, Shape], ...]) -> CutPoints:
    """Return the cuts of a PyTorch module, from the graph that it is exported as."""
    from dse_evaluators.workloads.own.module_export import export_module
    from dse_evaluators.workloads.own.own_readers import module_of

    module = module_of(origin, label).eval()
    rng = np.random.default_rng(0)
    drawn = {name: rng.normal(size=(_EXAMPLES, *shape)) for name, shape in shapes}
    problem: EvaluationError | None = None
    for kind in (np.float32, np.int64):  # integers: tokens
        feeds = {name: np.abs(one).astype(kind) for name, one in drawn.items()}
        try:
            content = export_module(module, {}, feeds, label)
        except EvaluationError as error:
            problem = problem or error
            continue
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "network.onnx"
            path.write_bytes(content)
            return _cut_graph(path, OpenAxes(sizes={}, batch=1))
    assert problem is not None
    raise problem


def _cut_graph(path: Path, axes: OpenAxes) -> CutPoints:
    """Return all cuts of an ONNX file, in the order of its operators."""
    found = read_onnx_layers(path, axes)
    graph = graph_of(path, axes)
    features, inputs = _live_elements(graph, path.name)
    layers = found.table.layers
    ends = _last_layers(found)
    before, names, crossing, kept = [0], ["input"], [0.0], [float(inputs[0])]
    for node, count in ends[:-1]:
        following = next(at for at, _ in ends if at > node)
        least = min(range(node + 1, following + 1), key=lambda at: features[at] + inputs[at])
        before.append(count)
        names.append(layers[count - 1].name)
        crossing.append(float(features[least]))
        kept.append(float(inputs[least]))
    return CutPoints(
        layers=layers,
        names=(*names, layers[-1].name),
        before=np.array([*before, len(layers)]),
        features=np.array([*crossing, 0.0]),
        inputs=np.array([*kept, 0.0]),
    )


def _last_layers(found: ReadLayers) -> list[tuple[int, int]]:
    """Return each operator that is a layer, with the number of layers up to it."""
    counts = {node: count for count, node in enumerate(found.nodes, start=1)}
    return sorted(counts.items())


def _live_elements(graph: Graph, file: str) -> tuple[Floats, Floats]:
    """Return the elements that are alive before each operator: of computed tensors, of inputs.

    Entry k, of n + 1 for n operators, is before operator k. A tensor is alive if an operator before
    k, or an input, makes it, and an operator from k on reads it. Results of the network that no
    operator reads are not counted.
    """
    made = dict[str, int]()
    read = dict[str, int]()
    for at, node in enumerate(graph.nodes):
        for name in node.inputs:
            if name and name not in graph.made_of:
                made.setdefault(name, -1)
                read[name] = at
        for name in node.outputs:
            if name not in graph.made_of:
                made[name] = at
    size = len(graph.nodes) + 1
    features, inputs = np.zeros(size + 1), np.zeros(size + 1)
    for name, last in read.items():
        if last <= made[name]:
            continue
        kind = inputs if made[name] < 0 else features
        elements = _elements_of(graph, name, file)
        kind[made[name] + 1] += elements
        kind[last + 1] -= elements
    return np.cumsum(features)[:size], np.cumsum(inputs)[:size]


def _elements_of(graph: Graph, name: str, file: str) -> int:
    if name not in graph.shapes:
        raise SpecError(
            f"the shape of {name!r} of {file} cannot be inferred, so cuts cannot be sized",
            hint="export the model with fixed sizes, or run onnx's symbolic shape inference on it",
        )
    return prod(graph.shapes[name])
