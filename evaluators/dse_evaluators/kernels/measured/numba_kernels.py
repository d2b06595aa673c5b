"""Kernels in Python that numba compiles; the one place that imports numba."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numba import njit, prange, set_num_threads

_CONTRACT = {"contract"}
"""Products and sums may be fused; sums keep their order."""


def multiply(a: Any, b: Any, c: Any, tiles: Any, order: Any, threads: int) -> None:
    """Set c (m, n) to a (m, k) times b (k, n), in tiles and with an order of loops over tiles."""
    sizes = np.array([a.shape[0], b.shape[1], a.shape[1]])
    share = -(-sizes[0] // threads)
    for part in prange(threads):
        low, high = part * share, min((part + 1) * share, sizes[0])
        c[low:high] = 0
        counts = -(-sizes // tiles)
        counts[0] = -(-(high - low) // tiles[0])
        at = np.empty(3, np.int64)
        for first in range(counts[order[0]]):
            for second in range(counts[order[1]]):
                for third in range(counts[order[2]]):
                    at[order[0]], at[order[1]], at[order[2]] = first, second, third
                    start = at * tiles
                    ends = np.minimum(start + tiles, sizes)
                    for i in range(low + start[0], min(low + start[0] + tiles[0], high)):
                        sums = c[i, start[1] : ends[1]]
                        for k in range(start[2], ends[2]):
                            left, line = a[i, k], b[k, start[1] : ends[1]]
                            for j in range(len(line)):
                                sums[j] += left * line[j]


def softmax_in_three_passes(x: Any, y: Any) -> None:
    """Set each row of y to the softmax of the row of x: maximum, sum, exponentials again."""
    for row in prange(x.shape[0]):
        most = x[row, 0]
        for value in x[row]:
            most = max(most, value)
        total = 0.0
        for value in x[row]:
            total += math.exp(value - most)
        scale = 1 / total
        for i in range(x.shape[1]):
            y[row, i] = scale * math.exp(x[row, i] - most)


def softmax_in_four_passes(x: Any, y: Any) -> None:
    """Set each row of y to the softmax of the row of x: maximum, exponentials, sum, scaling."""
    for row in prange(x.shape[0]):
        most = x[row, 0]
        for value in x[row]:
            most = max(most, value)
        for i in range(x.shape[1]):
            y[row, i] = math.exp(x[row, i] - most)
        scale = 1 / y[row].sum()
        for i in range(x.shape[1]):
            y[row, i] *= scale


def softmax_online(x: Any, y: Any) -> None:
    """Set each row of y to the softmax of x's row: the sum is corrected as the maximum grows."""
    for row in prange(x.shape[0]):
        most, total = x[row, 0], 0.0
        for value in x[row]:
            if value > most:
                total *= math.exp(most - value)
                most = value
            total += math.exp(value - most)
        scale = 1 / total
        for i in range(x.shape[1]):
            y[row, i] = scale * math.exp(x[row, i] - most)


def gather(table: Any, index: Any, out: Any) -> None:
    """Set row i of out to the row index[i] of the table."""
    for row in prange(len(index)):
        out[row] = table[index[row]]


@cache
def compile_kernel(kernel: Callable[..., None], *, parallel: bool) -> Callable[..., None]:
    """Return a kernel for compilation to machine code, which numba does at the first call."""
    return njit(parallel=parallel, fastmath=_CONTRACT, nogil=True)(kernel)


def on_threads(kernel: Callable[..., None], threads: int) -> Callable[..., None]:
    """Return the compiled kernel for a number of threads."""
    if threads > 1:
        set_num_threads(threads)
    return compile_kernel(kernel, parallel=threads > 1)
