"""Layer tables of recommenders that are trained on many accelerators, with published sizes.

Each has a bottom and a top MLP of equal square layers, and embedding tables of equal size. The
pairwise products of vectors (feature interactions) are left out, as they are in the source.

Source:
    Hsia et al.: MAD Max Beyond Single-Node, 2024, with its published configurations.
"""

from __future__ import annotations

from collections.abc import Mapping

from dse_evaluators.workloads.layer_table import LayerTable, Lookup
from dse_evaluators.workloads.layers import stack


def _recommender(layers: int, width: int, tables: Lookup) -> LayerTable:
    """Build a recommender with two MLPs of ``layers`` layers of ``width``, without biases."""
    widths = [width] * (layers + 1)
    both = (*stack("bottom", widths), *stack("top", widths))
    return LayerTable(layers=both, lookups=(tables,))


# The published configurations name the second one DLRM-I; that the paper's DLRM-B is the same one
# is recalled from its 332e9 parameters and 60 MFLOP, which these sizes give.
DLRM: Mapping[str, LayerTable] = {
    "dlrm-a": _recommender(
        10, 3994, Lookup(name="tables", rows=2_080_000, width=94, tables=4096, picked=15)
    ),
    "dlrm-b": _recommender(
        22, 826, Lookup(name="tables", rows=7_050_000, width=92, tables=512, picked=70)
    ),
}
