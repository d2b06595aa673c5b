"""Layer tables of the small networks on which compression is measured."""

from __future__ import annotations

from collections.abc import Mapping

from dse_evaluators.workloads.layer_table import LayerTable, Lookup, add_biases, join_tables
from dse_evaluators.workloads.layers import DIGITS_CNN, MNIST_CNN, MOVIELENS_MLP

_MOVIELENS_ROWS = {"user": 943, "movie": 1682, "occupation": 21, "decade": 8, "region": 19}

_TABLES = tuple(Lookup(name=name, rows=rows, width=32) for name, rows in _MOVIELENS_ROWS.items())

SMALL_NETWORKS: Mapping[str, LayerTable] = {
    "digits-cnn": add_biases(*DIGITS_CNN),
    "mnist-cnn": add_biases(*MNIST_CNN),
    "movielens-dlrm": join_tables(
        add_biases(*MOVIELENS_MLP), LayerTable(layers=(), lookups=_TABLES)
    ),
}
