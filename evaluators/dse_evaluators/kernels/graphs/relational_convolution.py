"""The evaluator ``kernels.relational-convolution``: a layer over typed edges, timed here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from dse.core.batch import Batch
from dse.core.metric import Metric, Metrics
from dse.core.values import Value
from dse.errors import EvaluationError, InfeasibleError, PluginError, SpecError
from dse_evaluators.declared_evaluator import DeclaredEvaluator
from dse_evaluators.generic.call_clock import CallTiming, time_by
from dse_evaluators.kernels.graphs.adjacency import digest_graph
from dse_evaluators.kernels.graphs.relational_layer import (
    LAYERS,
    MATERIALIZATIONS,
    ORDERS,
    LayerInputs,
    LayerPlan,
    count_operations,
    count_rows,
    prepare_call,
)
from dse_evaluators.kernels.graphs.typed_edges import TypedEdges, draw_triples, read_triples
from dse_evaluators.kernels.measured.kernel_timing import (
    FORMATS,
    refuse_without_effect,
    settings_of,
)
from dse_evaluators.one_by_one import Found, one_by_one
from dse_evaluators.reading_table import NumberInput, Reading, one_of

_DRAWN: Mapping[str, Reading] = {
    "nodes": NumberInput(1, 1 << 28, default=10000, whole=True),
    "degree": NumberInput(0.01, 1 << 16, default=16.0),
    "types": NumberInput(1, 1 << 16, default=50, whole=True),
    "skew": NumberInput(0, 4, default=0.5),
    "type_skew": NumberInput(0, 4, default=1.0),
}
_INPUTS: Mapping[str, Reading] = {
    "layer": one_of(LAYERS, "rgat"),
    "materialization": one_of(MATERIALIZATIONS, "edge"),
    "order": one_of(ORDERS, "message-first"),
    "features_in": NumberInput(1, 1 << 16, default=64, whole=True),
    "features_out": NumberInput(1, 1 << 16, default=64, whole=True),
    "format": one_of(FORMATS, "float32"),
    **_DRAWN,
}
_METRICS = (
    Metric(name="latency", unit="s", goal="minimize"),
    Metric(name="operations", goal="minimize"),
    Metric(name="rows", goal="minimize"),
    Metric(name="rows_per_edge", goal="minimize"),
    Metric(name="stored", unit="B", goal="minimize"),
    Metric(name="error", goal="minimize"),
    Metric(name="edges"),
    Metric(name="edge_types"),
)


class RelationalConvolution(
    DeclaredEvaluator, reads=_INPUTS, provides=_METRICS, version="1", kind="measured"
):
    """Time of a layer of a relational graph network on this machine, over your typed edges.

    Each type of edge has its own weights. An ``rgcn`` adds the messages of a node's neighbours, by
    the mean over each type; an ``rgat`` weights them by attention, with one head. NumPy computes
    the messages type by type, and SciPy adds them.

    ``latency`` is the time of a forward pass. ``rows`` are the messages that are stored,
    ``rows_per_edge`` their number divided by that of ``edges``, and ``stored`` the bytes of the
    messages, of projected targets and of scores. ``operations`` are the multiplications and
    additions of products and sums. ``error`` is the largest deviation from the plain layer (a
    message for each edge, products in the order of the definition) in double precision, relative to
    its largest output. A layer that exceeds the free memory is infeasible.

    Args:
        graph: your graph: a CSV or Parquet file of edges with the columns ``source``, ``target``
            and ``type``, whose values are any names; by default a graph is drawn.
        clock: ``wall``, or ``processor`` for processor time, to which other programs add little.
        precision: relative half-width of the 95 % interval of the time at which timing ends.
        limit: time limit of the timing of a design: seconds, or a text.

    Inputs:
        layer: ``rgcn``, or ``rgat``.
        materialization: ``edge`` computes a message for each edge, ``compact`` one for each pair of
            a source and a type, which all edges of the pair use.
        order: ``message-first`` projects sources and targets and then multiplies them by the
            attention vectors; ``weights-first`` multiplies the weights by the attention vectors, so
            that targets need no projection; only in an ``rgat``.
        features_in: features of a node before the layer.
        features_out: features of a node after it.
        nodes: nodes of a drawn graph.
        degree: mean number of edges that start in a node of a drawn graph.
        types: types of edges of a drawn graph.
        skew: exponent of the popularity of its nodes; 0 for none.
        type_skew: exponent of the popularity of its types; 0 for none.

    Limits:
        One thread, forward passes only, one head, one type of nodes. On a GPU, gathering and
        launches weigh otherwise.

    Error:
        The standard error is of the median of readings on this machine.

    Source:
        Schlichtkrull et al.: Modeling Relational Data with Graph Convolutional Networks, 2018.
        Compact rows and order of products: Wu et al., Hector, ASPLOS 2024 (arXiv 2301.06284).

    Example:
        options: {nodes: 100, degree: 4, types: 3, limit: 20 ms, precision: 0.5}
        parameters: {materialization: [edge, compact], order: [message-first, weights-first]}

    Raises:
        PluginError: an option is invalid.
        SpecError: the file of the graph does not exist.
    """

    user_options: ClassVar[Sequence[str]] = ("graph",)

    graph: str | None = None
    layer: str | None = None
    features_in: int | None = None
    features_out: int | None = None
    format: str | None = None
    nodes: int | None = None
    degree: float | None = None
    types: int | None = None
    skew: float | None = None
    type_skew: float | None = None
    clock: str = "wall"
    precision: float = 0.03
    limit: float | str = "2 s"

    def __post_init__(self) -> None:
        self._timing = CallTiming.of(self.clock, self.precision, self.limit)
        given: object = self.graph
        if given is not None and not isinstance(given, str):
            hint = "write the path of a file: graph: edges.csv"
            raise PluginError(f"graph is {given!r}", hint=hint, part=["graph"])
        if given is not None and given.endswith(".npz"):
            hint = "write a CSV or Parquet file with the columns source, target and type"
            raise SpecError(f"{given} has no types of edges", hint=hint, part=["graph"])
        digest = "drawn" if self.graph is None else digest_graph(Path(self.graph))
        self.version = f"{type(self).version}-{digest}"
        self._read: TypedEdges | None = None
        super().__post_init__()

    def __getstate__(self) -> Mapping[str, Any]:
        return {**self.__dict__, "_read": None}

    def evaluate(self, batch: Batch) -> Metrics:
        """Time n designs, one at a time; return metrics, (n,)."""
        return one_by_one(batch, tuple(self.provides), self._measure, uncertain=("latency",))

    def _measure(self, design: Mapping[str, Value]) -> Found:
        from threadpoolctl import threadpool_limits

        chosen = settings_of(self.readings, design)
        if chosen["layer"] == "rgcn":
            refuse_without_effect(design, ("order",), "layer == 'rgat'")
        plan = LayerPlan(
            layer=str(chosen["layer"]),
            materialization=str(chosen["materialization"]),
            order=str(chosen["order"]),
            features_in=int(chosen["features_in"]),
            features_out=int(chosen["features_out"]),
        )
        edges, kind = self._edges(design, chosen), FORMATS[str(chosen["format"])]
        rows, stored_bytes = _count_stored(edges, plan, np.dtype(kind).itemsize)
        with threadpool_limits(1):
            call = prepare_call(edges, plan, LayerInputs.draw(edges, plan, kind))
            error = _deviation(call(), edges, plan)
            latency_s, stderr_s = time_by(call, self._timing)
        return Found(
            values={
                "latency": latency_s,
                "operations": float(count_operations(edges, plan)),
                "rows": float(rows),
                "rows_per_edge": rows / edges.count,
                "stored": float(stored_bytes),
                "error": error,
                "edges": float(edges.count),
                "edge_types": float(edges.kinds),
            },
            errors={"latency": stderr_s},
        )

    def _edges(self, design: Mapping[str, Value], chosen: Mapping[str, Value]) -> TypedEdges:
        """Return the user's edges, or drawn ones.

        Raises:
            EvaluationError: an input has no effect on the user's graph.
        """
        if self.graph is None:
            return draw_triples(*(chosen[name] for name in _DRAWN))
        idle = [name for name in _DRAWN if name in design or name in self.readings.settled]
        if idle:
            problem = f"{idle[0]} has no effect on the graph of a file"
            raise EvaluationError(problem, hint="remove it, or the option graph")
        if self._read is None:
            self._read = read_triples(Path(self.graph))
        return self._read


def _deviation(found: Any, edges: TypedEdges, plan: LayerPlan) -> float:
    """Return the largest deviation of a layer's outputs from the plain layer, relative."""
    plain = LayerPlan(
        layer=plan.layer,
        materialization="edge",
        order="message-first",
        features_in=plan.features_in,
        features_out=plan.features_out,
    )
    exact = prepare_call(edges, plain, LayerInputs.draw(edges, plain, np.float64))()
    return float(np.abs(found - exact).max() / np.abs(exact).max())


def _count_stored(edges: TypedEdges, plan: LayerPlan, width: int) -> tuple[int, int]:
    """Return the rows of messages, and the bytes of all that is computed between in and out.

    Raises:
        InfeasibleError: the layer exceeds the free memory.
    """
    import psutil

    sources, targets = count_rows(edges, plan)
    projected = targets if plan.projects_targets else 0
    scores = sources + targets + edges.count if plan.layer == "rgat" else edges.count
    stored_bytes = ((sources + projected) * plan.features_out + scores) * width
    outside = edges.nodes * (plan.features_in + plan.features_out)
    weights = edges.kinds * plan.features_in * plan.features_out
    # The check computes the plain layer in double precision.
    plain_bytes = 8 * (2 * edges.count * (plan.features_out + 1) + outside + weights)
    total = stored_bytes + (outside + weights) * width + plain_bytes
    free = psutil.virtual_memory().available
    if total > free:
        raise InfeasibleError(
            f"the layer and its check take {total:.3g} B, and {free:.3g} B are free"
        )
    return sources, stored_bytes
