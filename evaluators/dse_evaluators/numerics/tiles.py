"""On-chip memory footprint of FlashAttention, and its traffic to and from DRAM."""

from __future__ import annotations

from dse_evaluators.formats.format import Format


def sram_bytes(
    rounding: Format, state: Format, width: int, *, block_queries: int, block_keys: int
) -> float:
    """Return the on-chip bytes of FlashAttention's tiles and of the state carried between them.

    Source:
        Dao et al., FlashAttention, 2022, algorithm 1.
    """
    tiles = (block_queries + 2 * block_keys) * width + block_queries * block_keys
    carried = block_queries * (width + 2)
    return (tiles * _bits(rounding) + carried * _bits(state)) / 8


def traffic_bytes(rounding: Format, state: Format, head: tuple[int, int], block_keys: int) -> float:
    """Return the bytes that FlashAttention of one head moves to and from DRAM.

    Keys and values are moved once, queries and the state once for each block of keys. ``head`` is
    (sequence length, head dimension). The state, which is read and written, consists of the
    outputs, sums and maxima so far.

    Source:
        Dao et al., FlashAttention, 2022, algorithm 1 and theorem 2.
    """
    length, width = head
    blocks = -(-length // block_keys)
    inputs = (2 + blocks) * length * width
    carried = 2 * blocks * length * (width + 2)
    return (inputs * _bits(rounding) + carried * _bits(state)) / 8


def _bits(chosen: Format) -> int:
    """Return the bits of one value in a format, without scales."""
    return chosen.grid.bits
