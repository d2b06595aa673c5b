"""On-chip memory of FlashAttention, and its traffic to and from memory."""

from __future__ import annotations

from dse_evaluators.formats.format import Format


def sram_bytes(
    rounding: Format, state: Format, width: int, *, block_queries: int, block_keys: int
) -> float:
    """The tiles that are on the chip at once: queries, keys, values, scores, outputs, state.

    Source:
        Dao et al., FlashAttention, 2022, algorithm 1.
    """
    tiles = (block_queries + 2 * block_keys) * width + block_queries * block_keys
    carried = block_queries * (width + 2)
    return (tiles * _bits(rounding) + carried * _bits(state)) / 8


def traffic_bytes(rounding: Format, state: Format, head: tuple[int, int], block_keys: int) -> float:
    """Return the bytes that one head moves.

    Keys and values are moved once, queries and the state with each block of keys.

    ``head`` is its length and width. The state is the outputs, sums and maxima so far, which are
    read and written.

    Source:
        Dao et al., FlashAttention, 2022, algorithm 1 and theorem 2.
    """
    length, width = head
    blocks = -(-length // block_keys)
    inputs = (2 + blocks) * length * width
    carried = 2 * blocks * length * (width + 2)
    return (inputs * _bits(rounding) + carried * _bits(state)) / 8


def _bits(chosen: Format) -> int:
    """Of one number."""
    return chosen.grid.bits
