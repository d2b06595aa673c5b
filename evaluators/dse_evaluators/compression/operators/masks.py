"""Encodings of pruning masks: bitmap, sparse rows, gaps, N:M and blocks."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np

from dse.core.values import Mask
from dse.errors import EvaluationError
from dse_evaluators.compression.operators import binary_index, huffman
from dse_evaluators.compression.operators.bits import pack_words, width_of
from dse_evaluators.compression.operators.prune import check_blocks
from dse_evaluators.compression.operators.record import Reader, Record, Section
from dse_evaluators.formats.arrays import Single

BITMAP, ROWS, GAPS, OF_M, BLOCKS = (
    "mask-bitmap", "mask-rows", "mask-gaps", "mask-of-m", "mask-blocks",
)  # fmt: skip

MaskCode = Callable[[Mask], Record]
"""Encoder of a mask, (rows, columns), as a record that decodes to ones and zeros."""


def bitmap(mask: Mask) -> Record:
    """Encode a pruning mask with one bit for each weight."""
    section = Section.of("metadata", mask.ravel().astype(np.uint8))
    return Record(kind=BITMAP, shape=mask.shape, sections=(section,))


def rows(mask: Mask) -> Record:
    """Encode a mask as compressed sparse rows: each row's count, and the kept columns."""
    count_bits, column_bits = _row_bits(mask.shape)
    counts = mask.sum(axis=1).astype(np.uint32)
    columns = np.nonzero(mask)[1].astype(np.uint32)
    sections = (
        Section.of_words("metadata", counts, count_bits),
        Section.of_words("metadata", columns, column_bits),
    )
    return Record(kind=ROWS, shape=mask.shape, sections=sections)


def gaps(mask: Mask) -> Record:
    """Encode a mask as Huffman-coded gaps between kept positions.

    Source:
        Han et al., Deep Compression, 2016, sections 2 and 4. The paper limits gaps to 5 or 8 bits
        and fills longer ones with zero weights; a code over all gaps needs no fillers.
    """
    places = np.flatnonzero(mask)
    apart = np.diff(places, prepend=-1) - 1
    width = width_of(mask.size)
    sections: tuple[Section, ...] = ()
    if len(places):
        table, codes = huffman.encode_symbols(apart.astype(np.uint32), width)
        sections = (table, Section(use="metadata", bits=codes.bits, data=codes.data))
    return Record(kind=GAPS, shape=mask.shape, sections=sections)


def of_m(kept: int, of: int) -> MaskCode:
    """Return an encoder of N:M masks, which stores the kept positions of each group of M weights.

    The result is the layout that hardware reads.

    Source:
        Mishra et al., Accelerating Sparse Deep Neural Networks, 2021, section 3: two bits for
        each of two weights of four.
    """

    def encode(mask: Mask) -> Record:
        if mask.shape[1] % of or (mask.reshape(-1, of).sum(axis=1) > kept).any():
            raise EvaluationError(f"the mask does not keep at most {kept} of every {of} columns")
        first = np.argsort(~mask.reshape(-1, of), axis=1, kind="stable")  # zeros pad a group
        places = np.sort(first[:, :kept], axis=1).astype(np.uint32)
        section = Section.of_words("metadata", places, width_of(of - 1))
        return Record(kind=OF_M, shape=mask.shape, settings=(kept, of), sections=(section,))

    return encode


def of_blocks(block: tuple[int, int]) -> MaskCode:
    """Return the encoder of block masks, with one bit for each block of (rows, columns)."""

    def encode(mask: Mask) -> Record:
        check_blocks((mask.shape[0], mask.shape[1]), block)
        high, wide = block
        cut = mask.reshape(mask.shape[0] // high, high, mask.shape[1] // wide, wide)
        stays = cut.any(axis=(1, 3))
        section = Section.of("metadata", stays.ravel().astype(np.uint8))
        return Record(kind=BLOCKS, shape=mask.shape, settings=block, sections=(section,))

    return encode


def smallest(mask: Mask) -> Record:
    """Encode a mask as bitmap, sparse rows or gaps, whichever is smallest."""
    return min((bitmap(mask), rows(mask), gaps(mask)), key=lambda record: record.cost.total)


def mask_of(record: Record) -> Mask:
    """Decode the pruning mask from its record."""
    return MASK_READERS[record.kind](record, ()) != 0


def _read_bitmap(record: Record, _: tuple[Single, ...]) -> Single:
    """Decode a bitmap to a mask of ones and zeros, (rows, columns)."""
    return record.sections[0].loose.astype(np.float32).reshape(record.shape)


def _read_rows(record: Record, _: tuple[Single, ...]) -> Single:
    """Decode compressed sparse rows to a mask of ones and zeros, (rows, columns)."""
    count_bits, column_bits = _row_bits(record.shape)
    counts = record.sections[0].words(count_bits)
    mask = np.zeros(record.shape, dtype=np.float32)
    row = np.repeat(np.arange(len(counts)), counts)
    columns = record.sections[1].words(column_bits) if column_bits else np.zeros_like(row)
    mask[row, columns] = 1
    return mask


def _read_gaps(record: Record, _: tuple[Single, ...]) -> Single:
    """Decode Huffman-coded gaps to a mask of ones and zeros, (rows, columns)."""
    mask = np.zeros(math.prod(record.shape), dtype=np.float32)
    if record.sections:
        table, codes = record.sections
        apart = huffman.decode_symbols(table, codes, width_of(mask.size)).astype(np.int64)
        mask[np.cumsum(apart + 1) - 1] = 1
    return mask.reshape(record.shape)


def _read_of_m(record: Record, _: tuple[Single, ...]) -> Single:
    """Decode positions in groups of M to an N:M mask of ones and zeros, (rows, columns)."""
    kept, of = record.settings
    groups = np.zeros((math.prod(record.shape) // of, of), dtype=np.float32)
    width = width_of(of - 1)
    places = record.sections[0].words(width) if width else np.zeros(len(groups), np.uint32)
    np.put_along_axis(groups, places.astype(np.int64).reshape(len(groups), kept), 1, axis=1)
    return groups.reshape(record.shape)


def _read_blocks(record: Record, _: tuple[Single, ...]) -> Single:
    """Decode one bit per block to a mask of ones and zeros, (rows, columns)."""
    high, wide = record.settings
    stays = pack_words(record.sections[0].loose, 1).astype(np.float32)
    cut = stays.reshape(record.shape[0] // high, record.shape[1] // wide)
    return cut.repeat(high, axis=0).repeat(wide, axis=1)


def _row_bits(shape: tuple[int, ...]) -> tuple[int, int]:
    """Return the bit widths in compressed sparse rows of a row's count and a column's index."""
    return width_of(shape[1]), width_of(shape[1] - 1)


MASK_READERS: Mapping[str, Reader] = {
    BITMAP: _read_bitmap,
    ROWS: _read_rows,
    GAPS: _read_gaps,
    OF_M: _read_of_m,
    BLOCKS: _read_blocks,
    binary_index.KIND: binary_index.read_record,
}
