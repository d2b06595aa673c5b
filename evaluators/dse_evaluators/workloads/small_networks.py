"""The layer tables of the small networks that compression is measured on."""

from __future__ import annotations

from collections.abc import Mapping

from dse_evaluators.workloads.layer_table import LayerTable, Lookup, biased, joined
from dse_evaluators.workloads.layers import DIGITS_CNN, MNIST_CNN, MOVIELENS_MLP

_MOVIELENS_ROWS = {"user": 943, "movie": 1682, "occupation": 21, "decade": 8, "region": 19}

_TABLES = tuple(Lookup(name=name, rows=rows, width=32) for name, rows in _MOVIELENS_ROWS.items())

SMALL_NETWORKS: Mapping[str, LayerTable] = {
    "digits-cnn": biased(*DIGITS_CNN),
    "mnist-cnn": biased(*MNIST_CNN),
    "movielens-dlrm": joined(biased(*MOVIELENS_MLP), LayerTable(layers=(), lookups=_TABLES)),
}
