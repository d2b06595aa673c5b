"""Low-rank approximation of weights with the least weight error or the least output error."""

from __future__ import annotations

import numpy as np

from dse.core.values import Floats
from dse_evaluators.compression.operators.dense import FP32
from dse_evaluators.compression.operators.inputs import check_inputs, moments
from dse_evaluators.compression.operators.products import check_rank, product
from dse_evaluators.compression.operators.record import Record, Store, table_of
from dse_evaluators.formats.arrays import Single

_NULL = 1e-12


def plain(weight: Single, rank: int, store: Store = FP32) -> Record:
    """Encode weights as factors of low rank with the least squared error, by a truncated SVD.

    Each factor is multiplied by the square roots of the singular values.

    Source:
        Eckart and Young, The Approximation of One Matrix by Another of Lower Rank, 1936; on
        layers: Denton et al., Exploiting Linear Structure Within Convolutional Networks, 2014.

    Raises:
        EvaluationError: the rank is out of range.
    """
    table = table_of(weight).astype(np.float64)
    check_rank(rank, min(table.shape))
    left, right = factors(table, rank)
    return product(left, right, weight.shape, store)


def whiten_weights(weight: Single, inputs: Single, rank: int, store: Store = FP32) -> Record:
    """Encode weights as factors of low rank with the least output error on calibration inputs.

    With second moments S S' of the inputs, the result is the truncated SVD of W S times the inverse
    of S; no other matrix of that rank has a smaller output error on these inputs.

    Source:
        Wang et al., SVD-LLM: Truncation-aware Singular Value Decomposition for Large Language
        Model Compression, 2024, section 3.1. The root of the moments is by eigenvectors, not by
        Cholesky, so that inputs that are always zero are allowed.

    Raises:
        EvaluationError: the rank is out of range, or the inputs do not fit the layer.
    """
    table = table_of(weight)
    check_inputs(table, inputs)
    check_rank(rank, min(table.shape))
    left, right = whitened_factors(table.astype(np.float64), inputs, rank)
    return product(left, right, weight.shape, store)


def factors(
    table: Floats,  # (outputs, inputs)
    rank: int,
) -> tuple[Floats, Floats]:
    """Return the two factors of the nearest matrix of a given rank, by a truncated SVD."""
    left, values, right = np.linalg.svd(table, full_matrices=False)
    roots = np.sqrt(values[:rank])
    return left[:, :rank] * roots, roots[:, None] * right[:rank]


def whitened_factors(
    table: Floats,  # (outputs, inputs)
    inputs: Single,  # (n, inputs)
    rank: int,
) -> tuple[Floats, Floats]:
    """Return the two factors of the matrix of a given rank with the least output error."""
    strengths, axes = np.linalg.eigh(moments(inputs))
    roots = np.sqrt(np.clip(strengths, 0, None))
    used = roots > _NULL * roots[-1]
    onto = axes * roots
    back = np.divide(1, roots, out=np.zeros_like(roots), where=used)[:, None] * axes.T
    left, right = factors(table @ onto, rank)
    return left, right @ back
