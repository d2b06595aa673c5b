"""Partition of a layer over several cores, each an array with its own buffers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from dse.core.values import Floats
from dse_evaluators.accelerators.systolic.matrix_products import ONE, LayerProducts

Split = Literal["m", "n"]
"""Dimension that is partitioned over the cores: output pixels (m) or filters (n)."""

SPLITS: tuple[Split, ...] = ("m", "n")


@dataclass(frozen=True, slots=True, kw_only=True)
class CoreShare:
    """Share of each layer that one core computes, and the number of cores with such a share."""

    product: LayerProducts
    cores: Floats  # (l, n) or (1,)

    @property
    def products(self) -> Floats:
        """Number of GEMMs of the sizes in ``product`` that all these cores compute together."""
        return self.product.copies * self.cores


def dealt(product: LayerProducts, cores: Floats, split: Floats) -> tuple[CoreShare, ...]:
    """Partition each layer over the cores; return the larger and the smaller share.

    The smaller share may belong to 0 cores. With the split ``m``, the rows of each GEMM are
    partitioned; with ``n``, its columns or, where a layer consists of several GEMMs, the GEMMs
    themselves. Shares differ by at most one row, column or GEMM. Inputs are partitioned with the
    rows; inputs shared by windows of two cores are counted once.
    """
    if (cores == 1.0).all():
        return (CoreShare(product=product, cores=ONE),)
    rows, alone = split == SPLITS.index("m"), product.copies == 1.0
    extent = np.where(rows, product.m, np.where(alone, product.n, product.copies))
    larger, smaller = np.ceil(extent / cores), np.floor(extent / cores)
    even = larger == smaller
    most = np.where(even, cores, extent - smaller * cores)
    rest = np.where(even | (smaller == 0.0), 0.0, cores - most)
    return tuple(
        CoreShare(
            product=replace(
                product,
                m=np.where(rows, share, product.m),
                n=np.where(~rows & alone, share, product.n),
                copies=np.where(~rows & ~alone, share, product.copies),
                inputs=np.where(rows, share / product.m, 1.0) * product.inputs,
            ),
            cores=number,
        )
        for share, number in ((larger, most), (np.maximum(smaller, 1.0), rest))
    )
