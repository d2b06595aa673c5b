"""Tucker-2 decomposition of a convolution, with a core of fewer channels."""

from __future__ import annotations

import numpy as np

from dse.core.values import Floats
from dse.errors import EvaluationError
from dse_evaluators.compression.operators.dense import FP32
from dse_evaluators.compression.operators.products import check_rank
from dse_evaluators.compression.operators.record import Record, Store, table_of
from dse_evaluators.formats.arrays import Single

KIND = "tucker-2"
_ROUNDS = 20


def tucker_2(weight: Single, outputs: int, inputs: int, store: Store = FP32) -> Record:
    """Decompose a convolution by Tucker-2: a 1x1 convolution, a smaller core, a 1x1 convolution.

    The factors are computed by higher-order orthogonal iteration from the leading singular vectors;
    the spatial axes are not decomposed.

    Args:
        weight: weights of the convolution, (outputs, inputs, height, width).
        outputs: rank along the first axis.
        inputs: rank along the second axis.
        store: encoder of the core and of both factors.

    Source:
        Kim et al., Compression of Deep Convolutional Neural Networks for Fast and Low Power
        Mobile Applications, 2016, section 3; De Lathauwer et al., On the Best Rank-1 and
        Rank-(R1, ..., RN) Approximation of Higher-Order Tensors, 2000, algorithm 4.2.

    Raises:
        EvaluationError: it is not a convolution, or a rank exceeds the length of its axis.
    """
    check_convolution(weight)
    check_rank(outputs, weight.shape[0])
    check_rank(inputs, weight.shape[1])
    tensor = weight.astype(np.float64)
    into = _leading(np.moveaxis(tensor, 1, 0), inputs)
    out = _leading(tensor, outputs)
    for _ in range(_ROUNDS):
        out = _leading(np.einsum("oihw,ir->orhw", tensor, into), outputs)
        into = _leading(np.moveaxis(np.einsum("oihw,or->rihw", tensor, out), 1, 0), inputs)
    core = np.einsum("oihw,oa,ib->abhw", tensor, out, into, optimize=True)
    parts = tuple(store(part.astype(np.float32)) for part in (core, out, into))
    return Record(kind=KIND, shape=weight.shape, parts=parts)


def read_record(record: Record, parts: tuple[Single, ...]) -> Single:
    """Decode the weights as the product of the stored core and both factors."""
    core, out, into = (part.astype(np.float64) for part in parts)
    whole = np.einsum("abhw,oa,ib->oihw", core, out, into, optimize=True)
    return whole.astype(np.float32).reshape(record.shape)


def check_convolution(weight: Single) -> None:
    """Check that weights are those of a convolution, with four axes.

    Raises:
        EvaluationError: they do not have four axes, are empty, or one is not finite.
    """
    table_of(weight)
    if weight.ndim != 4:
        raise EvaluationError(
            f"weights of shape {weight.shape} are not a convolution",
            hint="(outputs, inputs, height, width); for a matrix use svd",
        )


def _leading(
    tensor: Floats,  # (n, ...)
    rank: int,
) -> Floats:
    """Return the leading left singular vectors of the tensor as a matrix, (n, rank)."""
    table = tensor.reshape(len(tensor), -1)
    _, vectors = np.linalg.eigh(table @ table.T)
    return np.ascontiguousarray(vectors[:, ::-1][:, :rank])
