"""The evaluator ``clusters.graph-training``: epochs of graph networks on many devices."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from dse.core.batch import Batch
from dse.core.metric import Failure, Metric, Metrics
from dse.core.values import Floats, Value
from dse.errors import SpecError
from dse_evaluators.clusters.graph_training.graphs import (
    PARTITIONS,
    TrainingGraph,
    graph_of,
    partition_cost,
)
from dse_evaluators.clusters.own_system import SystemOption, system_edition, system_from
from dse_evaluators.clusters.systems import System
from dse_evaluators.clusters.topology import spread_s
from dse_evaluators.declared_evaluator import DeclaredEvaluator
from dse_evaluators.reading_table import NumberInput, Reading, one_of

_NUMBER_BYTES = 4
_INDEX_BYTES = 8
_PARTS = ("compute", "exchange", "transfer", "bubble")
_INPUTS: Mapping[str, Reading] = {
    "stages": NumberInput(1, 4096, default=1, whole=True),
    "parts": NumberInput(1, 4096, default=1, whole=True),
    "chunks": NumberInput(1, 65_536, default=1, whole=True),
    "layers": NumberInput(1, 10_000, whole=True),
    "hidden": NumberInput(1, 1e6, whole=True),
    "partition": one_of(PARTITIONS, "random"),
    "chunk_overhead": NumberInput(0, 1, "s", default=1e-4),
    "memory_efficiency": NumberInput(0.01, 1, default=0.5),
    "compute_efficiency": NumberInput(0.01, 1, default=0.5),
}
_METRICS = (
    Metric(name="epoch_time", unit="s", goal="minimize"),
    *(Metric(name=f"{part}_time", unit="s", part_of="epoch_time") for part in _PARTS),
    Metric(name="devices", goal="minimize"),
    Metric(name="volume", unit="B", goal="minimize"),
    Metric(name="volume_saving", goal="maximize"),
    Metric(name="speedup", goal="maximize"),
    Metric(name="copies", goal="minimize"),
    Metric(name="imbalance", goal="minimize"),
    Metric(name="stale_share", goal="minimize"),
    Metric(name="memory", unit="B", goal="minimize"),
    Metric(name="bottleneck", words=_PARTS),
)


class GraphTraining(DeclaredEvaluator, reads=_INPUTS, provides=_METRICS, version="1"):
    """Time and communication of an epoch of a graph network, by parts of the graph and stages.

    With ``parts``, each device has a part of the vertices, and in each layer it sends their
    embeddings to the parts that need them. With ``stages``, each device has consecutive layers, and
    sends the embeddings of all its vertices to the next one; the vertices pass the pipeline in
    ``chunks``. Both can be combined: ``stages`` times ``parts`` devices. An embedding of a
    neighbour in a later chunk is that of the epoch before; ``stale_share`` is the share of such
    neighbours if chunks are random. ``volume`` is the bytes of an epoch between all devices;
    ``volume_saving`` and ``speedup`` compare with as many devices that all have a part.

    Args:
        graph: ``squirrel``, ``physics``, ``flickr``, ``reddit``, ``yelp``, ``ogbn-products``; the
            path of your CSV file with the columns ``source`` and ``target``, a row for each pair of
            neighbours; ``{vertices: 100000, messages: 2000000, features: 128}``; or ``digits``,
            the nearest neighbours among images, as an example of a graph that is partitioned.
        features: numbers that a vertex of your file has as input.
        system: a name of ``clusters.systems``, the path of a YAML file, or a mapping
            ``{like: a100-dgx, node_devices: 4}``.

    Inputs:
        stages: stages of the pipeline.
        parts: parts of the graph; the devices of a stage.
        chunks: chunks of the vertices that pass the pipeline one after another.
        layers: layers of the network.
        hidden: numbers of an embedding.
        partition: ``random``; ``consecutive``, in the order of the file; or ``greedy``, one after
            another next to their neighbours. All but ``random`` need the edges of the graph.
        chunk_overhead: time to launch the kernels of a layer for a chunk.
        memory_efficiency: share of the memory bandwidth that the aggregation reaches.
        compute_efficiency: share of the peak in fp32 that the products reach.

    Limits:
        Layers of equal widths, a sum over neighbours and one product each. Nothing overlaps.
        The first layer communicates as the others do. Random partitions of stated sizes have the
        copies of a graph whose degrees are equal, which is an upper bound. How stale embeddings
        change the accuracy is not modelled. The efficiencies and the overhead are assumed.

    Error:
        Times are not validated: no measurement was available. Copies and loads of a partition are
        counted. Published savings are compared in ``studies/reproductions/gnnpipe.yaml``.

    Source:
        Chen, Chen, Qian: GNNPipe, arXiv 2308.10087, 2023, by its abstract and the scripts of its
        experiments; Stanton, Kliot: Streaming Graph Partitioning, 2012: ``greedy``.

    Example:
        options: {graph: flickr, layers: 32, hidden: 100}
        parameters: {stages: [1, 4], parts: [1, 2], chunks: [1, 16]}

    Raises:
        SpecError: the graph or the system is invalid.
    """

    user_options: ClassVar[Sequence[str]] = ("graph", "system")

    graph: str | Mapping[str, Any]
    features: int | None = None
    system: SystemOption = "a100-dgx"
    layers: int | None = None
    hidden: int | None = None
    partition: str | None = None
    chunk_overhead: float | str | None = None
    memory_efficiency: float | None = None
    compute_efficiency: float | None = None

    def __post_init__(self) -> None:
        is_file = isinstance(self.graph, str) and self.graph.endswith(".csv")
        if self.features is not None and not is_file:
            hint = "only a graph of a CSV file needs it"
            raise SpecError("features has no effect", hint=hint, part=["features"])
        self._graph = graph_of(self.graph, self.features)
        self._system = system_from(self.system)
        if "fp32" not in self._system.sheet.flops_per_s:
            problem = f"{self._system.sheet.name} has no figure for fp32"
            raise SpecError(problem, hint="another system", part=["system"])
        if self.partition is not None:
            self._check_partition(self.partition)
        super().__post_init__()
        pairs = self._graph.pairs
        content = "" if pairs is None else hashlib.sha256(pairs.tobytes()).hexdigest()
        own = [str(self.graph), content] if is_file or isinstance(self.graph, Mapping) else []
        editions = [system_edition({"own": own}) if own else "", system_edition(self.system)]
        self.version = "-".join(filter(None, (type(self).version, *editions)))

    def check_values(self, values: Mapping[str, Sequence[Value]]) -> None:
        """Refuse values out of range, and partitions of a graph whose edges are not known."""
        super().check_values(values)
        for kind in values.get("partition", ()):
            self._check_partition(kind)

    def _check_partition(self, kind: Value) -> None:
        if kind != "random" and self._graph.pairs is None:
            hint = "partition: random, or a CSV file of the edges as graph"
            raise SpecError(
                f"partition {kind!r} of {self._graph.name} needs its edges",
                hint=hint,
                part=["partition"],
            )

    def evaluate(self, batch: Batch) -> Metrics:
        """Return the metrics of n designs, (n,); too little memory or too few layers is a fault."""
        inputs = self.readings.columns(batch)
        columns = _compute(inputs, self._graph, self._system)
        whole = {**inputs, "parts": columns["devices"], "stages": np.ones(len(batch))}
        plain = _compute({**whole, "chunks": whole["stages"]}, self._graph, self._system)
        with np.errstate(divide="ignore", invalid="ignore"):
            saving = np.where(columns["volume"] > 0, plain["volume"] / columns["volume"], 1.0)
        columns |= {"volume_saving": saving, "speedup": plain["epoch_time"] / columns["epoch_time"]}
        held = self._system.sheet.dram_bytes
        failures: dict[int, Failure] = {}
        for row in np.flatnonzero(columns["memory"] > held).tolist():
            reason = f"{columns['memory'][row]:.3g} B a device, which has {held:.3g}"
            failures[row] = Failure(kind="infeasible", reason=reason)
        for row in np.flatnonzero(inputs["stages"] > inputs["layers"]).tolist():
            failures[row] = Failure(kind="infeasible", reason="more stages than layers")
        for row in np.flatnonzero(columns["devices"] > self._graph.vertices).tolist():
            failures[row] = Failure(kind="infeasible", reason="more devices than vertices")
        return Metrics(columns=columns, failures=failures)


def _compute(
    inputs: Mapping[str, Floats], graph: TrainingGraph, system: System
) -> dict[str, Floats]:
    stages, parts, chunks = (inputs[name] for name in ("stages", "parts", "chunks"))
    kinds = zip(parts.astype(int).tolist(), inputs["partition"].astype(int).tolist(), strict=True)
    keys = [(min(count, graph.vertices), PARTITIONS[kind]) for count, kind in kinds]
    costs = {key: partition_cost(graph, *key) for key in set(keys)}
    copies = np.array([costs[key].copies for key in keys])
    imbalance = np.array([costs[key].imbalance for key in keys])
    embeddings = graph.vertices * inputs["hidden"] * _NUMBER_BYTES
    per_stage = np.ceil(inputs["layers"] / stages)
    busy_s = per_stage * (
        _layer_s(inputs, graph, system) * imbalance / parts + 2 * chunks * inputs["chunk_overhead"]
    )
    # Each way, forwards and backwards: a message for each layer and chunk
    exchanged = copies * embeddings / parts / chunks
    share = np.maximum(parts, 2) / (np.maximum(parts, 2) - 1)
    one = np.ones(len(parts))
    asked_s = spread_s(system, "all_to_all", exchanged * share, np.maximum(parts, 2), apart=one)
    exchange_s = np.where(parts > 1, 2 * per_stage * chunks * asked_s, 0.0)
    two = np.full(len(parts), 2.0)
    sent_s = spread_s(system, "send_recv", embeddings / parts / chunks, two, apart=parts)
    transfer_s = np.where(stages > 1, 2 * chunks * sent_s, 0.0)
    bubble_s = (stages - 1) / chunks * (busy_s + exchange_s + transfer_s)
    taken = np.stack([busy_s, exchange_s, transfer_s, bubble_s])
    return {
        "epoch_time": taken.sum(axis=0),
        **{f"{name}_time": column for name, column in zip(_PARTS, taken, strict=True)},
        "devices": stages * parts,
        "volume": 2 * (inputs["layers"] * copies + stages - 1) * embeddings,
        "copies": copies,
        "imbalance": imbalance,
        "stale_share": (chunks - 1) / (2 * chunks),
        "memory": _memory(inputs, graph, copies, per_stage),
        "bottleneck": np.argmax(taken, axis=0).astype(np.float64),
    }


def _layer_s(inputs: Mapping[str, Floats], graph: TrainingGraph, system: System) -> Floats:
    """Return the time of a layer of the entire graph on one device, forwards and backwards, (n,).

    The aggregation reads an embedding for each message, and writes one for each vertex; backwards
    it does so again. The product has two more of its size backwards.
    """
    hidden = inputs["hidden"]
    moved = (graph.messages + 2 * graph.vertices) * hidden * _NUMBER_BYTES
    bandwidth = system.sheet.dram_bytes_per_s * inputs["memory_efficiency"]
    peak = system.sheet.flops_per_s["fp32"] * inputs["compute_efficiency"]
    return 2 * moved / bandwidth + 3 * 2 * graph.vertices * hidden**2 / peak


def _memory(
    inputs: Mapping[str, Floats], graph: TrainingGraph, copies: Floats, per_stage: Floats
) -> Floats:
    """Return the bytes of a device, (n,): features, edges, and two embeddings of each layer."""
    own = graph.vertices / inputs["parts"]
    embeddings = 2 * per_stage * own * inputs["hidden"] + own * copies * inputs["hidden"]
    edges = graph.messages / inputs["parts"] * _INDEX_BYTES
    weights = 4 * per_stage * inputs["hidden"] ** 2
    return (embeddings + own * graph.features + weights) * _NUMBER_BYTES + edges
