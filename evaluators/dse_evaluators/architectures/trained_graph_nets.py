"""Reader of the tables of NAS-Bench-Graph, whose files are pickles: only numbers are read."""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from dse.core.values import Floats, Ints
from dse.errors import PluginError
from dse_evaluators.architectures.cell_graphs import NODES, Hashes, hash_cells
from dse_evaluators.workloads.assets import ASSETS, asset_folder

ASSET = "nas-bench-graph"
OPERATIONS = ("gat", "gcn", "gin", "cheb", "sage", "arma", "graph", "fc", "skip")
SKIP = OPERATIONS.index("skip")
DATA_SETS = (
    "cora",
    "citeseer",
    "pubmed",
    "cs",
    "physics",
    "photo",
    "computers",
    "arxiv",
    "proteins",
)

_TREES = np.array(
    [
        (0, 0, 0, 0),
        (0, 0, 0, 1),
        (0, 0, 1, 1),
        (0, 0, 1, 2),
        (0, 0, 1, 3),
        (0, 1, 1, 1),
        (0, 1, 1, 2),
        (0, 1, 2, 2),
        (0, 1, 2, 3),
    ]
)
"""Inputs of the operations, by the first digit of a key; four digits for operations follow."""

_COLUMNS: Mapping[str, tuple[str, float]] = {
    "search": ("valid_perf", 1.0),
    "test": ("perf", 1.0),
    "latency": ("latency", 1.0),
    "parameters": ("para", 1e6),
}
"""Name in the file of each column, and its factor; ``search`` and ``test`` are accuracies."""


@lru_cache(maxsize=len(DATA_SETS))
def read_trained_networks(data: str) -> tuple[Hashes, Mapping[str, Floats]]:
    """Return the hashes of the graph networks trained on a data set, sorted, and their metrics.

    Raises:
        PluginError: the asset is not installed, or its file is none that can be read.
    """
    path = asset_folder(ASSET) / f"nas_bench_graph/light/{data}.bench"
    try:
        table = _NumbersOnly(io.BytesIO(path.read_bytes())).load()
        keys = np.array(list(table), dtype=np.int64)
        columns = {
            name: factor * np.array([float(row[field]) for row in table.values()])
            for name, (field, factor) in _COLUMNS.items()
        }
    except (OSError, pickle.UnpicklingError, KeyError, TypeError, ValueError) as error:
        hint = f"dse assets remove {ASSET}, then install it again"
        raise PluginError(f"{path} cannot be read: {error}", hint=hint) from error
    hashes = hash_cells(*cells_of(keys), skip=SKIP)
    order = np.argsort(hashes)
    return hashes[order], {name: column[order] for name, column in columns.items()}


def cells_of(
    keys: Ints,  # (n,)
) -> tuple[Ints, Ints]:
    """Return the inputs and operations of cells, each (n, 4), given their keys."""
    digits = keys[:, None] // 10 ** np.arange(NODES - 1, -1, -1) % 10
    return _TREES[keys // 10**NODES], digits


def version_of(data: str) -> str:
    """Return the version of a table of trained networks: hash of the asset, and the data set."""
    return f"1-{ASSETS[ASSET].sha256[:16]}-{data}"


class _NumbersOnly(pickle.Unpickler):
    """Reader of a pickle of numbers, which calls nothing else that the file may name."""

    _KNOWN: Mapping[tuple[str, str], Callable[..., Any]] = {
        ("numpy", "dtype"): np.dtype,
        ("numpy.core.multiarray", "scalar"): np._core.multiarray.scalar,  # type: ignore[attr-defined]  # noqa: SLF001
    }

    def find_class(self, module: str, name: str, /) -> Any:
        """Return one of the two names that a numpy number needs.

        Raises:
            UnpicklingError: the file names another class or function.
        """
        if (module, name) not in self._KNOWN:
            raise pickle.UnpicklingError(f"it names {module}.{name}")
        return self._KNOWN[module, name]
