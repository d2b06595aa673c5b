"""Attention in a low-precision format: over all keys at once, or in blocks as in FlashAttention.

Every result is rounded to the format; a matrix product is accumulated in single precision and
rounded once, as on a tensor core.
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
    """Queries, keys and values of one attention head, already rounded to the format."""

    queries: Single  # (q, d)
    keys: Single  # (n, d)
    values: Single  # (n, d)

    @property
    def scale(self) -> float:
        """Factor of the attention scores: one over the square root of the head dimension."""
        return float(self.queries.shape[1] ** -0.5)


def exact(heads: Heads) -> Floats:
    """Return the attention outputs in double precision, (q, d)."""
    queries, keys, values = (
        array.astype(np.float64) for array in (heads.queries, heads.keys, heads.values)
    )
    scores = queries @ keys.T * heads.scale
    shares = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(shares @ values / shares.sum(axis=1, keepdims=True))


def at_once(heads: Heads, rounding: Format) -> Single:
    """Return the outputs of plain attention, (q, d), with every result rounded.

    The softmax is over full rows, followed by one product.

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
    """Return the outputs of FlashAttention, (q, d), with an online softmax over blocks of keys.

    ``state`` is the format of the values carried from block to block: the maximum and the sum of
    each row, and the normalised outputs so far.

    Source:
        Dao et al., FlashAttention, 2022, algorithm 1, lines 9 to 13.
    """
    parts = [
        _rows(heads, slice(start, start + block_queries), (rounding, state), block_keys)
        for start in range(0, len(heads.queries), block_queries)
    ]
    return np.concatenate(parts)


def _rows(heads: Heads, rows: slice, formats: tuple[Format, Format], block_keys: int) -> Single:
    """Return the attention outputs of one block of queries, by FlashAttention."""
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
    """Return a function that rounds values to the nearest numbers of a format."""

    def near(values: Single) -> Single:
        return chosen.quantize(values)

    return near
