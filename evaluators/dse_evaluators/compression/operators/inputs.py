"""Calibration inputs of a layer, and their second moments, which give its output errors."""

from __future__ import annotations

import numpy as np
import scipy.linalg

from dse.core.values import Floats
from dse.errors import EvaluationError
from dse_evaluators.formats.arrays import Single


def check_inputs(
    table: Single,  # (outputs, inputs)
    inputs: Single,  # (n, inputs)
) -> None:
    """Check that an array, (n, inputs), can be the calibration inputs of a layer.

    Raises:
        EvaluationError: there are no inputs, their width is wrong, or a value is not finite.
    """
    if inputs.ndim != 2 or len(inputs) == 0 or inputs.shape[1] != table.shape[1]:
        raise EvaluationError(
            f"calibration inputs of shape {inputs.shape} do not fit a layer of "
            f"{table.shape[1]} inputs",
            hint="(samples, inputs); patches of a convolution count as samples",
        )
    if not np.isfinite(inputs).all():
        raise EvaluationError("a calibration input is infinite or not a number")


def moments(
    inputs: Single,  # (n, inputs)
) -> Floats:
    """Return the second moments of a layer's inputs: mean products of pairs, (inputs, inputs)."""
    wide = inputs.astype(np.float64)
    return wide.T @ wide / len(wide)


def inverse_factor(second: Floats, damping: float) -> Floats:
    """Return the upper Cholesky factor of the inverse of the damped second moments.

    Damping keeps the matrix invertible if some inputs are always zero. With rows and columns in
    reverse order, the lower factor of the moments is the inverse of the upper factor of their
    inverse: no inverse of a full matrix is computed.

    Args:
        second: second moments of the layer's inputs, (inputs, inputs), in the order of the columns.
        damping: share of the mean diagonal that is added to the diagonal.

    Returns:
        The factor, (inputs, inputs).
    """
    mean = float(np.diag(second).mean())
    damped = np.asfortranarray(second[::-1, ::-1])
    damped[np.diag_indices(len(damped))] += damping * mean if mean else 1.0
    factor = scipy.linalg.cholesky(damped, lower=True, overwrite_a=True, check_finite=False)
    inverse, _ = scipy.linalg.lapack.dtrtri(factor, lower=1, overwrite_c=1)
    return np.ascontiguousarray(inverse[::-1, ::-1])


def output_error(
    wanted: Single,  # (outputs, ...)
    given: Single,
    inputs: Single,  # (n, inputs)
) -> float:
    """Return the mean squared error of a layer's outputs with the weights ``given``.

    The reference are the outputs with the weights ``wanted``.
    """
    apart = wanted.astype(np.float64) - given
    outputs = inputs.astype(np.float64) @ apart.reshape(len(apart), -1).T
    return float((outputs**2).mean())
