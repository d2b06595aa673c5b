"""Magnitude pruning: over all layers, per layer, N:M, or in blocks."""

from __future__ import annotations

import numpy as np

from dse.core.values import Floats, Mask
from dse.errors import EvaluationError
from dse_evaluators.compression.operators.record import Layers, table_of
from dse_evaluators.formats.arrays import Single


def globally(layers: Layers, density: float) -> dict[str, Single]:
    """Zero all but the largest weights over all layers; of equal magnitudes, keep later ones.

    Args:
        layers: weights by layer, ranked together under one threshold.
        density: fraction of all weights that is kept, rounded to a whole count.

    Source:
        Han et al., Learning both Weights and Connections for Efficient Neural Networks, 2015;
        one threshold for all layers: Blalock et al., What is the State of Neural Network
        Pruning?, 2020.
    """
    flat = np.concatenate([layer.ravel() for layer in layers.values()])
    thin = _largest(flat, density)
    ends = np.cumsum([layer.size for layer in layers.values()])[:-1]
    parts = np.split(thin, ends)
    return {
        name: part.reshape(layer.shape)
        for (name, layer), part in zip(layers.items(), parts, strict=True)
    }


def by_layer(weight: Single, density: float) -> Single:
    """Return the weights with all but the largest fraction ``density`` set to zero."""
    return _largest(weight.ravel(), density).reshape(weight.shape)


def n_of_m(
    weight: Single,  # (outputs, ...)
    kept: int,
    of: int,
) -> Single:
    """Zero all but the ``kept`` largest weights of every ``of`` consecutive inputs (N:M).

    Source:
        Mishra et al., Accelerating Sparse Deep Neural Networks, 2021, section 3 (2:4).

    Raises:
        EvaluationError: the inputs are not a multiple of ``of``, or ``kept`` exceeds ``of``.
    """
    table = table_of(weight)
    if not 0 < kept <= of:
        raise EvaluationError(f"{kept} of {of} weights cannot be kept")
    if table.shape[1] % of:
        raise EvaluationError(f"{table.shape[1]} inputs are no multiple of {of}")
    groups = table.reshape(-1, of)
    order = np.argsort(-np.abs(groups), axis=1, kind="stable")
    thin = np.zeros_like(groups)
    chosen = order[:, :kept]
    np.put_along_axis(thin, chosen, np.take_along_axis(groups, chosen, axis=1), axis=1)
    return thin.reshape(weight.shape)


def blocks(
    weight: Single,  # (outputs, ...)
    density: float,
    block: tuple[int, int],
) -> Single:
    """Zero all but the blocks of weights with the largest sums of squares.

    A block has the shape (outputs, inputs).

    Source:
        Narang et al., Block-Sparse Recurrent Neural Networks, 2017 (there by the maximum); the
        sum: Joseph et al., A Programmable Approach to Neural Network Compression, 2020.

    Raises:
        EvaluationError: the outputs and inputs do not divide into whole blocks.
    """
    table = table_of(weight)
    high, wide = block
    check_blocks((table.shape[0], table.shape[1]), block)
    cut = table.reshape(len(table) // high, high, -1, wide)
    sums = (cut.astype(np.float64) ** 2).sum(axis=(1, 3))
    stays = _stays(sums.ravel(), density).reshape(sums.shape)
    return (cut * stays[:, None, :, None]).astype(np.float32).reshape(weight.shape)


def check_blocks(shape: tuple[int, int], block: tuple[int, int]) -> None:
    """Check that a table of the given shape divides into complete blocks.

    Raises:
        EvaluationError: the table does not divide into whole blocks.
    """
    if min(block) < 1 or shape[0] % block[0] or shape[1] % block[1]:
        raise EvaluationError(
            f"a table of {shape[0]} by {shape[1]} is no whole number of blocks of "
            f"{block[0]} by {block[1]}"
        )


def _largest(flat: Single, density: float) -> Single:
    """Return the numbers with all but the largest fraction ``density`` set to zero."""
    return np.where(_stays(np.abs(flat), density), flat, np.float32(0))


def _stays(sizes: Single | Floats, density: float) -> Mask:
    """Return the mask of the largest fraction ``density`` of magnitudes; of ties, later ones."""
    if not 0 <= density <= 1:
        raise EvaluationError(f"a share of {density} of the weights cannot stay", hint="0 to 1")
    dropped = sizes.size - round(density * sizes.size)
    stays = np.ones(sizes.size, dtype=np.bool_)
    stays[np.argsort(sizes, kind="stable")[:dropped]] = False
    return stays
