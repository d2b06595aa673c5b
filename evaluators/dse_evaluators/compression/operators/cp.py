"""CP decomposition of a convolution: a sum of outer products of four vectors."""

from __future__ import annotations

import numpy as np

from dse.core.values import Floats
from dse_evaluators.compression.operators.dense import FP32
from dse_evaluators.compression.operators.products import check_rank
from dse_evaluators.compression.operators.record import Record, Store
from dse_evaluators.compression.operators.tucker import check_convolution
from dse_evaluators.formats.arrays import Single

KIND = "cp"
_ROUNDS = 200
_STILL = 1e-9
_RIDGE = 1e-9


def cp(weight: Single, rank: int, store: Store = FP32, *, seed: int = 0) -> Record:
    """Decompose a convolution by CP, fitted with alternating least squares.

    The result equals a sequence of two pointwise and two one-dimensional convolutions.

    Args:
        weight: weights of the convolution, (outputs, inputs, height, width).
        rank: number of summed products; it may exceed the axes' lengths.
        store: encoder of the four factors.
        seed: seed of the initial factors.

    Source:
        Lebedev et al., Speeding-up Convolutional Neural Networks Using Fine-tuned
        CP-Decomposition, 2015, section 3; Kolda and Bader, Tensor Decompositions and
        Applications, 2009, figure 3.3.

    Raises:
        EvaluationError: it is not a convolution, or the rank exceeds its number of weights.
    """
    check_convolution(weight)
    check_rank(rank, weight.size)
    tensor = weight.astype(np.float64)
    parts = tuple(store(part.astype(np.float32)) for part in _fit_factors(tensor, rank, seed))
    return Record(kind=KIND, shape=weight.shape, parts=parts)


def read_record(record: Record, parts: tuple[Single, ...]) -> Single:
    """Decode a convolution: the sum over ranks of the outer products of the four factors."""
    wide = [part.astype(np.float64) for part in parts]
    return _sum_products(wide).astype(np.float32).reshape(record.shape)


def _fit_factors(tensor: Floats, rank: int, seed: int) -> list[Floats]:
    """Fit the CP factors of all axes, (length, rank) each, by alternating least squares."""
    rng = np.random.default_rng(seed)
    sides = [rng.standard_normal((length, rank)) for length in tensor.shape]
    whole = float((tensor**2).sum())
    if whole == 0:
        return [np.zeros_like(side) for side in sides]
    last = np.inf
    for _ in range(_ROUNDS):
        for axis in range(4):
            sides[axis] = _solve_axis(tensor, sides, axis)
        lost = float(((tensor - _sum_products(sides)) ** 2).sum())
        if last - lost <= _STILL * whole:
            break
        last = lost
    return _balance_factors(sides)


def _solve_axis(tensor: Floats, sides: list[Floats], axis: int) -> Floats:
    """Return the best factor of one axis with the others fixed.

    A small ridge keeps the system solvable.
    """
    others = [a for a in range(4) if a != axis]
    gram = np.prod([sides[a].T @ sides[a] for a in others], axis=0)
    across = np.moveaxis(tensor, axis, 0).reshape(tensor.shape[axis], -1)
    seen = across @ _multiply_rows([sides[a] for a in others])
    ridge = _RIDGE * max(float(np.trace(gram)), np.finfo(float).tiny) / len(gram)
    return np.linalg.solve(gram + ridge * np.eye(len(gram)), seen.T).T


def _multiply_rows(sides: list[Floats]) -> Floats:
    """Return the Khatri-Rao product of the factors: Kronecker products column by column."""
    table = sides[0]
    for side in sides[1:]:
        table = (table[:, None] * side[None]).reshape(-1, side.shape[1])
    return table


def _balance_factors(sides: list[Floats]) -> list[Floats]:
    """Scale the vectors of each outer product to equal norms, so that short formats suffice.

    The outer products do not change.
    """
    lengths = [np.linalg.norm(side, axis=0) for side in sides]
    shared = np.prod(lengths, axis=0) ** 0.25
    return [
        side * np.divide(shared, length, out=np.zeros_like(length), where=length > 0)
        for side, length in zip(sides, lengths, strict=True)
    ]


def _sum_products(sides: list[Floats]) -> Floats:
    lengths = [len(side) for side in sides]
    return (sides[0] @ _multiply_rows(sides[1:]).T).reshape(lengths)
