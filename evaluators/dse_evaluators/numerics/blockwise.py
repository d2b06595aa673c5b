"""Attention in a short number format: all keys at once, or block by block as FlashAttention does.

Every result is rounded to the format; a matrix product is summed in single precision and rounded
once, as a tensor core does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dse.core.values import Floats
from dse_evaluators.formats.arrays import Single
from dse_evaluators.formats.format import Format

Rounding = Callable[[Single], Single]


@dataclass(frozen=True, slots=True, kw_only=True)
class Heads:
    """The inputs of one attention head, already at the numbers of the format."""

    queries: Single  # (q, d)
    keys: Single  # (n, d)
    values: Single  # (n, d)

    @property
    def scale(self) -> float:
        """Factor that scores are multiplied by."""
        return float(self.queries.shape[1] ** -0.5)


def exact(heads: Heads) -> Floats:
    """The outputs in double precision, (q, d)."""
    queries, keys, values = (
        array.astype(np.float64) for array in (heads.queries, heads.keys, heads.values)
    )
    scores = queries @ keys.T * heads.scale
    shares = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(shares @ values / shares.sum(axis=1, keepdims=True))


def at_once(heads: Heads, rounding: Format) -> Single:
    """The outputs of plain attention, (q, d): a softmax over whole rows, then one product.

    Source:
        Vaswani et al., Attention Is All You Need, 2017, eq. 1.
    """
    near = _rounding(rounding)
    scores = near(near(heads.queries @ heads.keys.T) * np.float32(heads.scale))
    shares = near(np.exp(near(scores - scores.max(axis=1, keepdims=True))))
    shares = near(shares / near(shares.sum(axis=1, keepdims=True)))
    return near(shares @ heads.values)


def blockwise(
    heads: Heads,
    rounding: Format,
    state: Format,
    *,
    block_queries: int,
    block_keys: int,
) -> Single:
    """The outputs of FlashAttention, (q, d): a softmax that is corrected with each block of keys.

    ``state`` is the format of what is carried from block to block: the row's maximum and sum, and
    the outputs so far, normalised.

    Source:
        Dao et al., FlashAttention, 2022, algorithm 1, lines 9 to 13.
    """
    parts = [
        _rows(heads, slice(start, start + block_queries), (rounding, state), block_keys)
        for start in range(0, len(heads.queries), block_queries)
    ]
    return np.concatenate(parts)


def _rows(heads: Heads, rows: slice, formats: tuple[Format, Format], block_keys: int) -> Single:
    """The outputs of one block of queries."""
    near, held = (_rounding(chosen) for chosen in formats)
    queries = heads.queries[rows]
    largest = np.full((len(queries), 1), -np.inf, dtype=np.float32)
    total = np.zeros((len(queries), 1), dtype=np.float32)
    outputs = np.zeros((len(queries), heads.values.shape[1]), dtype=np.float32)
    for start in range(0, len(heads.keys), block_keys):
        block = slice(start, start + block_keys)
        scores = near(near(queries @ heads.keys[block].T) * np.float32(heads.scale))
        top = scores.max(axis=1, keepdims=True)
        shares = near(np.exp(near(scores - top)))
        new = np.maximum(largest, top)
        before, now = held(np.exp(held(largest - new))), held(np.exp(held(top - new)))
        kept = held(before * total)
        total = held(kept + held(now * held(shares.sum(axis=1, keepdims=True))))
        added = held(now * held(shares @ heads.values[block]))
        outputs = held(held(held(kept * outputs) + added) / total)
        largest = new
    return outputs


def _rounding(chosen: Format) -> Rounding:
    """To the nearest of the format's numbers."""

    def near(values: Single) -> Single:
        return chosen.quantize(values)

    return near
