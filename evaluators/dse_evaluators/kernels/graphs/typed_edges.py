"""Edges with a type: triples in a file of the user, or drawn ones."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dse.core.values import Ints
from dse.errors import SpecError
from dse_evaluators.generic.table_file import read_table

TRIPLE = ("source", "target", "type")


@dataclass(frozen=True)
class TypedEdges:
    """Edges (e,) of a graph, sorted by type; nodes and types are numbered from 0."""

    source: Ints
    target: Ints
    kind: Ints
    nodes: int
    kinds: int

    @cached_property
    def count(self) -> int:
        """The number of edges."""
        return len(self.kind)

    @cached_property
    def incoming(self) -> tuple[Ints, Ints]:
        """Order of the edges by target, (e,), and the first edge of each node in it, (n + 1,)."""
        order = np.argsort(self.target, kind="stable")
        counts = np.bincount(self.target, minlength=self.nodes)
        return order, np.concatenate([[0], np.cumsum(counts)])

    @cached_property
    def in_degree(self) -> Ints:
        """The edges of the same type that end in the same node, for each edge, (e,)."""
        pairs = self.kind * np.int64(self.nodes) + self.target
        _, places, counts = np.unique(pairs, return_inverse=True, return_counts=True)
        return counts[places].astype(np.int64)


def read_triples(path: Path) -> TypedEdges:
    """Return the typed edges of a table with the columns source, target and type.

    Args:
        path: a CSV or Parquet file; its values are any names. A triple that is repeated counts
            once.

    Raises:
        SpecError: the file cannot be read, lacks a column, or has a blank cell.
    """
    table = read_table(str(path))
    table.check_columns("a table of typed edges", TRIPLE)
    columns = [_names_of(path, name, table.values(name)) for name in TRIPLE]
    names, ends = np.unique(np.concatenate(columns[:2]), return_inverse=True)
    types, kind = np.unique(columns[2], return_inverse=True)
    source, target = ends.reshape(2, -1)
    return _sort_edges(source, target, kind, len(names), len(types))


@lru_cache(maxsize=4)
def draw_triples(
    nodes: int, degree: float, types: int, skew: float, type_skew: float
) -> TypedEdges:
    """Return drawn typed edges, the same for equal arguments; repeated triples count once.

    Args:
        nodes: number of nodes.
        degree: mean number of edges that start in a node.
        types: number of types.
        skew: exponent of the weights with which sources and targets are drawn, rank^-skew.
        type_skew: exponent of the weights of the types.
    """
    rng = np.random.default_rng(0)
    count = max(1, round(nodes * degree))
    source = rng.permutation(nodes)[_draw_ranks(rng, nodes, skew, count)]
    target = rng.permutation(nodes)[_draw_ranks(rng, nodes, skew, count)]
    kind = _draw_ranks(rng, types, type_skew, count)
    return _sort_edges(source, target, kind, nodes, types)


def _draw_ranks(rng: np.random.Generator, size: int, skew: float, count: int) -> Ints:
    weights = np.arange(1, size + 1, dtype=np.float64) ** -skew
    bounds = np.cumsum(weights) / weights.sum()
    return np.minimum(np.searchsorted(bounds, rng.random(count)), size - 1).astype(np.int64)


def _sort_edges(source: Ints, target: Ints, kind: Ints, nodes: int, kinds: int) -> TypedEdges:
    rows = np.unique(np.stack([kind, source, target]).astype(np.int64), axis=1)
    return TypedEdges(source=rows[1], target=rows[2], kind=rows[0], nodes=nodes, kinds=kinds)


def _names_of(path: Path, column: str, values: list[Any]) -> NDArray[Any]:
    for row, one in enumerate(values, start=1):
        if one is None:
            hint = "fix the cell, or remove the row"
            raise SpecError(f"{path}, row {row}: {column} is empty", hint=hint)
    return np.array(list(map(str, values)))
