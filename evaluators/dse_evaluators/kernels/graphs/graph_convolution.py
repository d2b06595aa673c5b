"""The evaluator ``kernels.graph-convolution``: a layer of a graph network, timed here."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from dse.core.batch import Batch
from dse.core.metric import Metric, Metrics
from dse.core.values import Value
from dse.errors import EvaluationError, InfeasibleError, PluginError
from dse_evaluators.declared_evaluator import DeclaredEvaluator
from dse_evaluators.generic.call_clock import CallTiming, time_by
from dse_evaluators.kernels.graphs.adjacency import (
    digest_graph,
    draw_graph,
    normalise,
    read_graph,
    sample_neighbours,
)
from dse_evaluators.kernels.measured.kernel_timing import FORMATS, settings_of
from dse_evaluators.one_by_one import Found, one_by_one
from dse_evaluators.reading_table import NumberInput, Reading, one_of

_ORDERS = ("aggregate-first", "combine-first")
_DRAWN: Mapping[str, Reading] = {
    "nodes": NumberInput(2, 1 << 28, default=10000, whole=True),
    "degree": NumberInput(0.01, 1 << 16, default=16.0),
    "skew": NumberInput(0, 4, default=0.5),
}
_INPUTS: Mapping[str, Reading] = {
    "features_in": NumberInput(1, 1 << 16, default=128, whole=True),
    "features_out": NumberInput(1, 1 << 16, default=128, whole=True),
    "order": one_of(_ORDERS, "combine-first"),
    "fanout": NumberInput(0, 1 << 20, default=0, whole=True),
    "format": one_of(FORMATS, "float32"),
    **_DRAWN,
}
_METRICS = (
    Metric(name="latency", unit="s", goal="minimize"),
    Metric(name="aggregation_time", unit="s", goal="minimize"),
    Metric(name="combination_time", unit="s", goal="minimize"),
    Metric(name="aggregation_share", goal="minimize"),
    Metric(name="operations", goal="minimize"),
    Metric(name="edges"),
    Metric(name="memory", unit="B", goal="minimize"),
)
_TIMED = ("latency", "aggregation_time", "combination_time")


class GraphConvolution(
    DeclaredEvaluator, reads=_INPUTS, provides=_METRICS, version="1", kind="measured"
):
    """Time of a graph convolution on this machine: sparse aggregation and dense combination.

    The layer is A X W, with the normalised adjacency A (n, n) of the graph with loops, features X
    (n, ``features_in``) and weights W (``features_in``, ``features_out``). SciPy multiplies by A,
    on one thread, and NumPy by W. ``latency`` is the time of both, ``aggregation_time`` and
    ``combination_time`` are those of each alone, and ``aggregation_share`` is the share of the
    first in their sum. ``operations`` counts a multiplication and an addition for each entry of A
    and of W, ``edges`` the entries of A, ``memory`` the bytes of all matrices, the intermediate one
    included. A layer that exceeds the free memory is infeasible.

    Args:
        graph: your graph: a CSV or Parquet file of edges with the columns ``source`` and
            ``target``, or an ``.npz`` file with ``edge_index`` (2, e) or of
            ``scipy.sparse.save_npz``; by default a graph is drawn.
        both_ways: whether an edge of the file stands for its reverse, too.
        clock: ``wall``, or ``processor`` for processor time, to which other programs add little.
        precision: relative half-width of the 95 % interval of each time at which timing ends.
        limit: time limit of each of the three timings of a design: seconds, or a text.

    Inputs:
        features_in: features of a node before the layer.
        features_out: features of a node after it.
        order: ``aggregate-first`` computes (A X) W, ``combine-first`` A (X W).
        fanout: neighbours of a node that are sampled, at most; 0 takes all.
        nodes: nodes of a drawn graph.
        degree: mean neighbours of a node of a drawn graph.
        skew: exponent of the popularity of its nodes; 0 for none.

    Limits:
        One thread. Features are dense; those of bags of words are sparse.

    Error:
        The standard errors are of medians of readings on this machine.

    Source:
        Kipf, Welling: Semi-Supervised Classification with Graph Convolutional Networks, 2017.
        Orders: Geng et al., AWB-GCN, 2020.

    Example:
        options: {nodes: 200, limit: 20 ms, precision: 0.5}
        parameters: {features_out: [4, 16], order: [aggregate-first, combine-first]}

    Raises:
        PluginError: an option is invalid.
        SpecError: the file of the graph does not exist.
    """

    user_options: ClassVar[Sequence[str]] = ("graph",)

    graph: str | None = None
    both_ways: bool | None = None
    features_in: int | None = None
    features_out: int | None = None
    order: str | None = None
    fanout: int | None = None
    format: str | None = None
    nodes: int | None = None
    degree: float | None = None
    skew: float | None = None
    clock: str = "wall"
    precision: float = 0.03
    limit: float | str = "2 s"

    def __post_init__(self) -> None:
        self._timing = CallTiming.of(self.clock, self.precision, self.limit)
        given: object = self.graph
        if given is not None and not isinstance(given, str):
            hint = "write the path of a file: graph: edges.csv"
            raise PluginError(f"graph is {given!r}", hint=hint, part=["graph"])
        if self.both_ways is not None and self.graph is None:
            problem = "both_ways has no effect on a drawn graph"
            raise PluginError(problem, hint="remove it, or name a file: graph", part=["both_ways"])
        digest = "drawn" if self.graph is None else digest_graph(Path(self.graph))
        self.version = f"{type(self).version}-{digest}"
        self._read: Any = None
        super().__post_init__()

    def __getstate__(self) -> Mapping[str, Any]:
        return {**self.__dict__, "_read": None}

    def evaluate(self, batch: Batch) -> Metrics:
        """Time n designs, one at a time; return metrics, (n,)."""
        return one_by_one(batch, tuple(self.provides), self._measure, uncertain=_TIMED)

    def _measure(self, design: Mapping[str, Value]) -> Found:
        from threadpoolctl import threadpool_limits

        chosen = settings_of(self.readings, design)
        adjacency = normalise(self._adjacency(design, chosen), FORMATS[str(chosen["format"])])
        memory_bytes = _count_bytes(adjacency, chosen)
        calls = prepare_layer(adjacency, chosen)
        with threadpool_limits(1):
            timings = [time_by(call, self._timing) for call in calls]
        values = {name: median_s for name, (median_s, _) in zip(_TIMED, timings, strict=True)}
        both_s = values["aggregation_time"] + values["combination_time"]
        wide, narrow = int(chosen["features_in"]), int(chosen["features_out"])
        summed = wide if chosen["order"] == "aggregate-first" else narrow
        return Found(
            values={
                **values,
                "aggregation_share": values["aggregation_time"] / both_s,
                "operations": 2.0 * (adjacency.nnz * summed + adjacency.shape[0] * wide * narrow),
                "edges": float(adjacency.nnz),
                "memory": float(memory_bytes),
            },
            errors={name: error for name, (_, error) in zip(_TIMED, timings, strict=True)},
        )

    def _adjacency(self, design: Mapping[str, Value], chosen: Mapping[str, Value]) -> Any:
        """Return the matrix of the user's graph, or of a drawn one, sampled if requested.

        Raises:
            EvaluationError: an input has no effect on the user's graph.
        """
        if self.graph is None:
            found = draw_graph(*(chosen[name] for name in _DRAWN))
        else:
            idle = [name for name in _DRAWN if name in design or name in self.readings.settled]
            if idle:
                problem = f"{idle[0]} has no effect on the graph of a file"
                raise EvaluationError(problem, hint="remove it, or the option graph")
            if self._read is None:
                self._read = read_graph(Path(self.graph), both_ways=self.both_ways is not False)
            found = self._read
        return sample_neighbours(found, int(chosen["fanout"])) if chosen["fanout"] else found


def prepare_layer(
    adjacency: Any, chosen: Mapping[str, Value]
) -> tuple[Callable[[], Any], Callable[[], Any], Callable[[], Any]]:
    """Return calls that compute the layer, its aggregation and its combination.

    The features and weights are drawn, the same for equal sizes.
    """
    rng = np.random.default_rng(0)
    kind = FORMATS[str(chosen["format"])]
    wide, narrow = int(chosen["features_in"]), int(chosen["features_out"])
    features = rng.standard_normal((adjacency.shape[0], wide), np.float32).astype(kind)
    weights = (rng.standard_normal((wide, narrow), np.float32) / np.sqrt(wide)).astype(kind)
    if chosen["order"] == "aggregate-first":
        between = adjacency @ features
        return (
            lambda: (adjacency @ features) @ weights,
            lambda: adjacency @ features,
            lambda: between @ weights,
        )
    between = features @ weights
    return (
        lambda: adjacency @ (features @ weights),
        lambda: adjacency @ between,
        lambda: features @ weights,
    )


def _count_bytes(adjacency: Any, chosen: Mapping[str, Value]) -> int:
    """Return the bytes of all matrices of a layer.

    Raises:
        InfeasibleError: they exceed the free memory.
    """
    import psutil

    wide, narrow = int(chosen["features_in"]), int(chosen["features_out"])
    between = wide if chosen["order"] == "aggregate-first" else narrow
    rows = adjacency.shape[0]
    numbers = rows * (wide + between + narrow) + wide * narrow
    sparse_bytes = adjacency.data.nbytes + adjacency.indices.nbytes + adjacency.indptr.nbytes
    total = int(sparse_bytes + numbers * adjacency.dtype.itemsize)
    free = psutil.virtual_memory().available
    if total > free:
        raise InfeasibleError(f"the matrices take {total:.3g} B, and {free:.3g} B are free")
    return total
