"""One pass over a layer's columns: each error is compensated in the columns after it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dse.core.values import Floats

AT_ONCE = 64


def compensate_columns(
    left: Floats,  # (inputs, outputs), changed in place
    factor: Floats,  # (inputs, inputs), upper
    settle: Callable[[int], Floats],  # (outputs,)
    *,
    at_once: int = AT_ONCE,
) -> None:
    """Round a layer's columns in order; compensate each error in the columns that follow.

    Arrays are (inputs, outputs), so that a column of the layer is contiguous in memory.

    Args:
        left: weights that are not fixed yet, changed by compensation.
        factor: upper Cholesky factor of the inverse of the inputs' second moments.
        settle: function that returns the stored values of the column at a place, given its number.
        at_once: columns per chunk; before the first of a chunk is fixed, the errors of all earlier
            columns are compensated in the entire chunk.

    Source:
        Frantar et al., GPTQ: Accurate Post-Training Quantization for Generative Pre-trained
        Transformers, 2023, algorithm 1 (lazy updates in chunks).
    """
    count, outputs = left.shape
    for start in range(0, count, at_once):
        end = min(start + at_once, count)
        errors = np.zeros((end - start, outputs))
        for place in range(start, end):
            error = (left[place] - settle(place)) / factor[place, place]
            errors[place - start] = error
            after = slice(place + 1, end)
            left[after] -= np.outer(factor[place, after], error)
        left[end:] -= factor[start:end, end:].T @ errors
