"""Adjacency matrices of graphs: edges in files of the user, or drawn with a skew of degrees."""

from __future__ import annotations

import hashlib
import zipfile
import zlib
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dse.core.values import Ints
from dse.errors import SpecError, nearest
from dse_evaluators.generic.table_file import read_table

_COLUMNS = ("source", "target")
_EDGES = "edge_index"
_TABLES = (".csv", ".csv.gz", ".tsv", ".parquet", ".pq")
_MOST_NODES = 1 << 31  # of the 32-bit indices of a sparse matrix


def digest_graph(path: Path) -> str:
    """Return a hash of a file.

    Raises:
        SpecError: there is no such file, or its name is not that of a graph.
    """
    if not path.is_file():
        beside = [one.name for one in path.parent.iterdir()] if path.parent.is_dir() else []
        raise SpecError(f"there is no file {path}", hint=nearest(path.name, beside), part=["graph"])
    if not path.name.endswith((*_TABLES, ".npz")):
        hint = f"known extensions: {', '.join((*_TABLES, '.npz'))}"
        raise SpecError(f"{path} is no graph by its name", hint=hint, part=["graph"])
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:16]


def read_graph(path: Path, *, both_ways: bool) -> Any:  # scipy has no types
    """Return the adjacency matrix of a graph's file, (n, n), with ones, in CSR form.

    Args:
        path: a table with the columns ``source`` and ``target``, whose values are any names of
            nodes; or an ``.npz`` file with ``edge_index``, (2, e), or as ``scipy.sparse.save_npz``
            writes it.
        both_ways: whether each edge also stands for its reverse.

    Raises:
        SpecError: the file cannot be read, or holds no edges.
    """
    if path.suffix == ".npz":
        edges, count = _read_arrays(path)
    else:
        table = read_table(str(path))
        table.check_columns("a table of edges", _COLUMNS)
        ends = [_names_of(path, name, table.values(name)) for name in _COLUMNS]
        names, places = np.unique(np.concatenate(ends), return_inverse=True)
        edges, count = places.reshape(2, -1), len(names)
    if not edges.size:
        raise SpecError(f"{path} has no edge", hint="write one at least")
    return _matrix_of(edges, count, both_ways=both_ways)


@lru_cache(maxsize=4)
def draw_graph(nodes: int, degree: float, skew: float) -> Any:
    """Return the adjacency matrix of a drawn graph, (n, n), the same for equal arguments.

    Args:
        nodes: number of nodes.
        degree: mean number of neighbours of a node; loops and repeated edges are drawn, too, and
            count once.
        skew: exponent of the weights with which the nodes are drawn, rank^-skew; 0 draws all alike.
    """
    rng = np.random.default_rng(0)
    weights = np.arange(1, nodes + 1, dtype=np.float64) ** -skew
    bounds = np.cumsum(weights) / weights.sum()
    count = max(1, round(nodes * degree / 2))
    drawn = np.searchsorted(bounds, rng.random((2, count)))
    order = rng.permutation(nodes)  # popular nodes are no neighbours in memory
    return _matrix_of(order[np.minimum(drawn, nodes - 1)], nodes, both_ways=True)


def sample_neighbours(matrix: Any, fanout: int) -> Any:
    """Return an adjacency matrix with at most ``fanout`` of each row's neighbours, drawn once.

    Source:
        Hamilton, Ying, Leskovec: Inductive Representation Learning on Large Graphs, 2017.
    """
    rng = np.random.default_rng(0)
    counts = np.diff(matrix.indptr)
    rows = np.repeat(np.arange(len(counts)), counts)
    order = np.lexsort((rng.random(len(rows)), rows))
    place = np.arange(len(rows)) - np.repeat(matrix.indptr[:-1], counts)
    kept = np.sort(order[place < fanout])
    edges = np.stack([rows[kept], matrix.indices[kept]])
    return _matrix_of(edges, len(counts), both_ways=False)


def normalise(matrix: Any, kind: type[np.floating[Any]]) -> Any:
    """Return D^-1/2 (A + I) D^-1/2 with the degrees D of the rows of A + I, in CSR form.

    Source:
        Kipf, Welling: Semi-Supervised Classification with Graph Convolutional Networks, 2017,
        eq. 2.
    """
    from scipy import sparse

    looped = (matrix + sparse.eye_array(matrix.shape[0], format="csr")).astype(bool)
    scale = np.diff(looped.indptr) ** -0.5
    found = looped.astype(np.float64).multiply(scale[:, None]).multiply(scale[None, :])
    return found.tocsr().astype(kind)


def _matrix_of(edges: NDArray[Any], count: int, *, both_ways: bool) -> Any:
    from scipy import sparse

    if both_ways:
        edges = np.concatenate([edges, edges[::-1]], axis=1)
    ones = np.ones(edges.shape[1], bool)
    found = sparse.coo_array((ones, (edges[0], edges[1])), shape=(count, count)).tocsr()
    found.sum_duplicates()
    return found.astype(bool).astype(np.float64)


def _names_of(path: Path, column: str, values: list[Any]) -> NDArray[Any]:
    for row, one in enumerate(values, start=1):
        if one is None:
            hint = "fix the cell, or remove the row"
            raise SpecError(f"{path}, row {row}: {column} is empty", hint=hint)
    return np.array(list(map(str, values)))


def _read_arrays(path: Path) -> tuple[Ints, int]:
    """Return the edges of an ``.npz`` file, (2, e), and the number of nodes."""
    from scipy import sparse

    try:
        with np.load(path, allow_pickle=False) as arrays:
            if _EDGES in arrays:
                return _check_edges(path, arrays[_EDGES])
        found = sparse.load_npz(path).tocoo()
    except SpecError:
        raise
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        problem = f"{path} cannot be read as a graph: {error}"
        hint = f"write it with scipy.sparse.save_npz, or an array {_EDGES} of shape (2, e)"
        raise SpecError(problem, hint=hint) from error
    if found.shape[0] != found.shape[1]:
        problem = f"{path} has a matrix of {found.shape[0]} x {found.shape[1]}"
        raise SpecError(problem, hint="an adjacency matrix is square")
    return np.stack([found.row, found.col]).astype(np.int64), int(found.shape[0])


def _check_edges(path: Path, edges: NDArray[Any]) -> tuple[Ints, int]:
    if edges.ndim != 2 or edges.shape[0] != 2 or edges.dtype.kind not in "iu":
        problem = f"{path}: {_EDGES} is {edges.dtype} of shape {edges.shape}"
        raise SpecError(problem, hint="write whole numbers of shape (2, e)")
    if edges.size and not 0 <= int(edges.min()) <= int(edges.max()) < _MOST_NODES:
        problem = f"{path}: {_EDGES} holds nodes from {edges.min()} to {edges.max()}"
        raise SpecError(problem, hint="count nodes from 0")
    return edges.astype(np.int64), int(edges.max()) + 1 if edges.size else 0
