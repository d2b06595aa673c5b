"""Selection of the weights that are set to zero, and of the filters that are kept."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dse.core.values import Ints
from dse_evaluators.formats.arrays import Single


def prune_smallest(weights: Sequence[Single], sparsity: float) -> list[Single]:
    """Set the smallest weights of all layers together to zero; among ties, the earlier.

    Args:
        weights: the layers' tensors, ranked together by magnitude.
        sparsity: fraction of all weights that is set to zero, rounded to a whole count.

    Source:
        Han et al., Learning both Weights and Connections for Efficient Neural Networks, 2015;
        global threshold as in Blalock et al., What is the State of Neural Network Pruning?, 2020.
    """
    flat = np.concatenate([weight.ravel() for weight in weights])
    dropped = np.argsort(np.abs(flat), kind="stable")[: round(sparsity * flat.size)]
    flat[dropped] = 0.0
    parts = np.split(flat, np.cumsum([weight.size for weight in weights])[:-1])
    return [part.reshape(w.shape) for part, w in zip(parts, weights, strict=True)]


def strongest(
    weight: Single,  # (filters, ...)
    keep: float,
) -> Ints:
    """Return the indices of the filters with the largest L1 norms, ascending; at least one.

    Source:
        Li et al., Pruning Filters for Efficient ConvNets, 2017, section 3.1.
    """
    norms = np.abs(weight.astype(np.float64)).reshape(len(weight), -1).sum(axis=1)
    count = max(1, round(keep * len(weight)))
    return np.sort(np.argsort(-norms, kind="stable")[:count])
