"""Graphs to train on: stated sizes, or the edges of a user's file, which can be partitioned."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dse.errors import SpecError, nearest
from dse_evaluators.csv_files.csv_records import read_rows

Indices = NDArray[np.int64]

PARTITIONS = ("random", "consecutive", "greedy")
_TABLE = Path(__file__).with_name("graphs.csv")
_KEYS = ("vertices", "messages", "features")
_EXAMPLE = "{vertices: 100000, messages: 2000000, features: 128}"
_NEIGHBOURS = 8
_SEED = 0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TrainingGraph:
    """Graph whose vertices aggregate messages of their neighbours in each layer.

    Args:
        name: name of the graph.
        vertices: number of vertices.
        messages: messages of a layer: two for each pair of neighbours.
        features: numbers that a vertex has as input.
        pairs: pairs of neighbours, (e, 2); ``None`` if only sizes are stated.
    """

    name: str
    vertices: int
    messages: int
    features: int
    pairs: Indices | None = None

    @property
    def degree(self) -> float:
        """Mean number of messages to a vertex."""
        return self.messages / self.vertices


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionCost:
    """Cost of a partition: copies of a vertex in other parts, and the load of the fullest part.

    Args:
        copies: mean number of other parts that need a vertex.
        imbalance: messages of the fullest part, divided by their mean.
    """

    copies: float
    imbalance: float


def graph_of(value: object, features: int | None = None) -> TrainingGraph:
    """Return the graph that an option names.

    Args:
        value: a name of ``graphs.csv``; ``digits``, the nearest neighbours among scikit-learn's
            images of digits; a mapping of ``vertices``, ``messages`` and ``features``; or the path
            of a CSV file with the columns ``source`` and ``target``, a row for each pair.
        features: numbers that a vertex of a file has as input.

    Raises:
        SpecError: the name, the file or a key is unknown, or a row is not valid.
    """
    if isinstance(value, Mapping):
        return _parse_sizes(value)
    if isinstance(value, str) and value.endswith(".csv"):
        return _read_pairs(Path(value), features or 0)
    if value == "digits":
        return _digits()
    rows = {row["graph"]: row for row in read_rows(_TABLE)}
    if value not in rows:
        hint = f"{nearest(str(value), (*rows, 'digits'))}; or ./edges.csv, or {_EXAMPLE}"
        raise SpecError(f"there is no graph {value!r}", hint=hint, part=["graph"])
    row = rows[str(value)]
    return _of_sizes(str(value), {key: int(row[key]) for key in _KEYS})


def partition_cost(graph: TrainingGraph, parts: int, kind: str) -> PartitionCost:
    """Return the cost of a partition of a graph into ``parts``.

    With the pairs of a graph, vertices are assigned and copies are counted. With sizes alone,
    ``random`` has the expected copies of a vertex with the mean degree, which is an upper bound for
    graphs of other degrees; the others need the pairs.
    """
    if parts == 1:
        return PartitionCost(copies=0.0, imbalance=1.0)
    if graph.pairs is None:
        missed = (1 - 1 / parts) ** graph.degree
        return PartitionCost(copies=(parts - 1) * (1 - missed), imbalance=1.0)
    owner = assign(graph, parts, kind)
    ends = np.concatenate([graph.pairs, graph.pairs[:, ::-1]])
    needed = np.unique(ends[:, 0] * parts + owner[ends[:, 1]])
    elsewhere = (needed % parts != owner[needed // parts]).sum()
    load = np.bincount(owner[ends[:, 1]], minlength=parts)
    return PartitionCost(
        copies=float(elsewhere / graph.vertices), imbalance=float(load.max() / load.mean())
    )


def assign(graph: TrainingGraph, parts: int, kind: str) -> Indices:
    """Return the part of each vertex, (v,): parts differ by at most one vertex, but for greedy.

    ``greedy`` places one vertex after another where most of its neighbours are, weighted by the
    room that is left.

    Source:
        Stanton, Kliot: Streaming Graph Partitioning for Large Distributed Graphs, 2012 (linear
        deterministic greedy).
    """
    even = np.arange(graph.vertices) * parts // graph.vertices
    if kind == "consecutive":
        return even
    if kind == "random":
        return np.random.default_rng(_SEED).permutation(even)
    assert graph.pairs is not None
    ends = np.concatenate([graph.pairs, graph.pairs[:, ::-1]])
    order = np.argsort(ends[:, 0], kind="stable")
    starts = np.searchsorted(ends[order, 0], np.arange(graph.vertices + 1))
    neighbours = ends[order, 1]
    owner, held = np.full(graph.vertices, -1), np.zeros(parts)
    capacity = -(-graph.vertices // parts)
    for vertex in range(graph.vertices):
        known = owner[neighbours[starts[vertex] : starts[vertex + 1]]]
        near = np.bincount(known[known >= 0], minlength=parts)
        score = near * (1 - held / capacity)
        # Among equals the emptiest: also where no neighbour has been placed yet.
        open_ = np.where(held < capacity, score, -1.0)
        best = np.flatnonzero(open_ == open_.max())
        owner[vertex] = best[np.argmin(held[best])]
        held[owner[vertex]] += 1
    return owner


def _parse_sizes(value: Mapping[str, Any]) -> TrainingGraph:
    for key in value:
        if key not in _KEYS:
            hint = nearest(str(key), _KEYS)
            raise SpecError(f"a graph has no key {key!r}", hint=hint, part=["graph"])
    for key in _KEYS:
        if key not in value:
            raise SpecError(f"the graph has no {key}", hint=_EXAMPLE, part=["graph"])
        if isinstance(value[key], bool) or not isinstance(value[key], int) or value[key] < 1:
            problem = f"{key} of the graph is {value[key]!r}"
            raise SpecError(problem, hint="a whole number from 1", part=["graph"])
    return _of_sizes("own", value)


def _of_sizes(name: str, sizes: Mapping[str, int]) -> TrainingGraph:
    return TrainingGraph(
        name=name,
        vertices=sizes["vertices"],
        messages=sizes["messages"],
        features=sizes["features"],
    )


def _read_pairs(path: Path, features: int) -> TrainingGraph:
    hint = "a CSV file with the columns source and target, a row for each pair of neighbours"
    try:
        with path.open(encoding="utf-8", newline="") as file:
            reader = csv.reader(file)
            header = [cell.strip() for cell in next(reader, [])]
            rows = [(reader.line_num, row) for row in reader if row]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise SpecError(f"{path} cannot be read: {error}", hint=hint, part=["graph"]) from error
    missing = [name for name in ("source", "target") if name not in header]
    if missing or not rows:
        lack = f"column {missing[0]!r}" if missing else "rows"
        raise SpecError(f"{path} has no {lack}", hint=hint, part=["graph"])
    places = header.index("source"), header.index("target")
    numbers: dict[str, int] = {}
    pairs = np.empty((len(rows), 2), dtype=np.int64)
    for place, (line, row) in enumerate(rows):
        names = [row[one].strip() if one < len(row) else "" for one in places]
        if not all(names) or names[0] == names[1]:
            problem = "has no two vertices" if not all(names) else "joins a vertex to itself"
            raise SpecError(f"the row {','.join(row)!r} {problem}", where=f"{path}:{line}")
        pairs[place] = [numbers.setdefault(name, len(numbers)) for name in names]
    return _of_pairs(path.stem, pairs, len(numbers), features)


def _of_pairs(name: str, pairs: Indices, vertices: int, features: int) -> TrainingGraph:
    once = np.unique(np.sort(pairs, axis=1), axis=0)
    return TrainingGraph(
        name=name, vertices=vertices, messages=2 * len(once), features=features, pairs=once
    )


@cache
def _digits() -> TrainingGraph:
    """Return scikit-learn's images of digits, each joined to its nearest others."""
    from sklearn.datasets import load_digits  # slow to import, and only this graph needs it

    images = load_digits().data
    square = (images**2).sum(axis=1)
    distance = square[:, None] + square[None, :] - 2 * images @ images.T
    np.fill_diagonal(distance, np.inf)
    near = np.argsort(distance, axis=1, kind="stable")[:, :_NEIGHBOURS]
    pairs = np.stack([np.repeat(np.arange(len(images)), _NEIGHBOURS), near.ravel()], axis=1)
    return _of_pairs("digits", pairs, len(images), images.shape[1])
