"""Layers of relational graph networks, with messages by edge or by source and type."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dse.core.values import Ints
from dse_evaluators.kernels.graphs.typed_edges import TypedEdges

LAYERS = ("rgcn", "rgat")
MATERIALIZATIONS = ("edge", "compact")
ORDERS = ("message-first", "weights-first")
_SLOPE = 0.2
"""Of the leaky ReLU of scores: Velickovic et al., Graph Attention Networks, 2018, section 2.1."""

Array = NDArray[Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerPlan:
    """Variant of a layer: its kind, what is stored for each edge, and the order of products."""

    layer: str
    materialization: str
    order: str
    features_in: int
    features_out: int

    @property
    def projects_targets(self) -> bool:
        """Whether the features of targets are multiplied by all of the weights."""
        return self.layer == "rgat" and self.order == "message-first"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRows:
    """Pairs of a node and a type for which a row is stored, sorted by type.

    ``node`` (m,) is the node of each row, ``bounds`` (r + 1,) are the first rows of the types, and
    ``place`` (e,) is the row that each edge uses.
    """

    node: Ints
    bounds: Ints
    place: Ints

    @staticmethod
    def of(edges: TypedEdges, ends: Ints, materialization: str) -> StoredRows:
        """Return a row for each edge, or one for each pair of an end and a type."""
        if materialization == "edge":
            node, kind, place = ends, edges.kind, np.arange(edges.count)
        else:
            pairs = edges.kind * np.int64(edges.nodes) + ends
            unique, place = np.unique(pairs, return_inverse=True)
            kind, node = np.divmod(unique, edges.nodes)
        bounds = np.searchsorted(kind, np.arange(edges.kinds + 1))
        return StoredRows(node=node, bounds=bounds, place=place)


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerInputs:
    """Drawn inputs: features (n, i), weights (r, i, o), attention vectors (r, o) of both ends."""

    features: Array
    weights: Array
    source_vectors: Array
    target_vectors: Array

    @staticmethod
    def draw(edges: TypedEdges, plan: LayerPlan, kind: type[np.floating[Any]]) -> LayerInputs:
        """Draw the inputs, the same for equal sizes."""
        rng = np.random.default_rng(0)
        wide, narrow, types = plan.features_in, plan.features_out, edges.kinds
        shapes = ((edges.nodes, wide), (types, wide, narrow), (types, narrow), (types, narrow))
        scales = (1.0, wide**-0.5, narrow**-0.5, narrow**-0.5)
        drawn = [
            (rng.standard_normal(shape, np.float32) * np.float32(scale)).astype(kind)
            for shape, scale in zip(shapes, scales, strict=True)
        ]
        return LayerInputs(
            features=drawn[0], weights=drawn[1], source_vectors=drawn[2], target_vectors=drawn[3]
        )


def prepare_call(edges: TypedEdges, plan: LayerPlan, inputs: LayerInputs) -> Callable[[], Array]:
    """Return a call that computes the layer's outputs, (n, o); the structure is prepared before."""
    sources = StoredRows.of(edges, edges.source, plan.materialization)
    order, first = edges.incoming
    columns = sources.place[order]
    if plan.layer == "rgcn":
        shares = (1.0 / edges.in_degree).astype(inputs.features.dtype)[order]
        return lambda: _sum_rows(
            _project(inputs.features, inputs.weights, sources), shares, columns, first
        )
    targets = StoredRows.of(edges, edges.target, plan.materialization)

    def attend() -> Array:
        messages = _project(inputs.features, inputs.weights, sources)
        if plan.projects_targets:
            projected = _project(inputs.features, inputs.weights, targets)
            from_source = _dot(messages, inputs.source_vectors, sources)
            from_target = _dot(projected, inputs.target_vectors, targets)
        else:
            from_source = _fold(inputs, inputs.source_vectors, sources)
            from_target = _fold(inputs, inputs.target_vectors, targets)
        scores = from_source[sources.place] + from_target[targets.place]
        return _sum_rows(messages, _softmax(scores[order], first), columns, first)

    return attend


def count_rows(edges: TypedEdges, plan: LayerPlan) -> tuple[int, int]:
    """Return the stored rows of sources and of targets; targets have none in an ``rgcn``."""
    ends = (edges.source, edges.target) if plan.layer == "rgat" else (edges.source,)
    found = [len(StoredRows.of(edges, one, plan.materialization).node) for one in ends]
    return found[0], found[1] if len(found) > 1 else 0


def count_operations(edges: TypedEdges, plan: LayerPlan) -> int:
    """Return the multiplications and additions of the products and sums of a layer.

    Softmax and the choice of rows are not counted.
    """
    wide, narrow = plan.features_in, plan.features_out
    sources, targets = count_rows(edges, plan)
    count = sources * wide * narrow + edges.count * narrow
    if plan.projects_targets:
        count += targets * wide * narrow + (sources + targets) * narrow
    elif plan.layer == "rgat":
        count += 2 * edges.kinds * wide * narrow + (sources + targets) * wide
    return 2 * count


def _project(features: Array, weights: Array, rows: StoredRows) -> Array:
    """Return the features of the rows' nodes times the weights of their types, (m, o)."""
    found = np.empty((len(rows.node), weights.shape[2]), features.dtype)
    for kind, (start, end) in enumerate(zip(rows.bounds[:-1], rows.bounds[1:], strict=True)):
        if end > start:
            np.matmul(features[rows.node[start:end]], weights[kind], out=found[start:end])
    return found


def _dot(values: Array, vectors: Array, rows: StoredRows) -> Array:
    """Return the product of each row with the vector of its type, (m,)."""
    found = np.empty(len(values), values.dtype)
    for kind, (start, end) in enumerate(zip(rows.bounds[:-1], rows.bounds[1:], strict=True)):
        if end > start:
            np.matmul(values[start:end], vectors[kind], out=found[start:end])
    return found


def _fold(inputs: LayerInputs, vectors: Array, rows: StoredRows) -> Array:
    """Return X (W a) for the rows' nodes and types, (m,): the weights are multiplied first."""
    folded = np.matmul(inputs.weights, vectors[:, :, None])[:, :, 0]
    found = np.empty(len(rows.node), folded.dtype)
    for kind, (start, end) in enumerate(zip(rows.bounds[:-1], rows.bounds[1:], strict=True)):
        if end > start:
            np.matmul(inputs.features[rows.node[start:end]], folded[kind], out=found[start:end])
    return found


def _softmax(scores: Array, first: Ints) -> Array:
    """Return the softmax of leaky scores over each node's edges; edges are in order of nodes."""
    leaky = np.where(scores > 0, scores, scores.dtype.type(_SLOPE) * scores)
    counts = np.diff(first)
    starts = first[:-1][counts > 0]
    among = counts[counts > 0]
    raised = np.exp(leaky - np.repeat(np.maximum.reduceat(leaky, starts), among))
    return raised / np.repeat(np.add.reduceat(raised, starts), among)


def _sum_rows(values: Array, shares: Array, columns: Ints, first: Ints) -> Array:
    """Return the weighted sum of the rows that each node's edges use, (n, o)."""
    from scipy import sparse

    shape = (len(first) - 1, len(values))
    return np.asarray(sparse.csr_array((shares, columns, first), shape=shape) @ values)
