"""Packing of a layer's channels into the slots of BFV ciphertexts, and its operation counts.

A ciphertext of ring dimension n has two rows of n / 2 slots. Each row holds a power of two of
channels, one image each, so that rotating a row moves channels cyclically. An output is a sum over
pairs of channels and window positions; pairs of equal distance are one *diagonal*.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dse.core.values import Ints
from dse_evaluators.workloads.layers import Layer

SCHEDULES = ("rotate-then-multiply", "multiply-then-rotate", "mixed")


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerShape:
    """Shape of a layer whose output is as large as its image, divided by the stride."""

    name: str
    height: int
    width: int
    channels: int
    filters: int
    window_height: int = 1
    window_width: int = 1
    stride: int = 1
    groups: int = 1

    @staticmethod
    def of(layer: Layer) -> LayerShape:
        """Return the shape of a layer of a workload; the image has no padding."""
        return LayerShape(
            name=layer.name,
            height=layer.output_height * layer.stride,
            width=layer.output_width * layer.stride,
            channels=layer.channels,
            filters=layer.filters,
            window_height=layer.filter_height,
            window_width=layer.filter_width,
            stride=layer.stride,
            groups=layer.groups,
        )

    @property
    def pixels(self) -> int:
        return self.height * self.width

    @property
    def terms(self) -> int:
        """Number of products in one output."""
        return self.window_height * self.window_width * self.channels // self.groups

    @property
    def offsets(self) -> tuple[tuple[int, int], ...]:
        """Vertical and horizontal offset of each position of the window from the output pixel.

        Positions that lie outside of the image for all outputs are left out.
        """
        tall, wide = self.window_height, self.window_width
        return tuple(
            (row - (tall - 1) // 2, column - (wide - 1) // 2)
            for row in range(tall)
            for column in range(wide)
            if abs(row - (tall - 1) // 2) < self.height
            and abs(column - (wide - 1) // 2) < self.width
        )

    def sum_limit(self, weight_bits: int, activation_bits: int) -> int:
        """Largest absolute value of an output, for signed operands of these widths."""
        return self.terms * (2 ** (weight_bits - 1) - 1) * (2 ** (activation_bits - 1) - 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationCounts:
    """Operations of one layer under a schedule, and the counts that its worst noise depends on.

    Attributes:
        rotations: key switches: rotations of rows, and exchanges of the two rows.
        products: products of a ciphertext and a plaintext.
        additions: additions of ciphertexts.
        to_ntt: transforms of ciphertexts, if weights are stored in the NTT domain.
        from_ntt: inverse transforms of ciphertexts, if weights are stored in the NTT domain.
        summed: products that are added to one output.
        switched_before: key switches before products, over all products of one output.
        turned_before: key switches of ``switched_before`` after which the row is rotated once more.
        parts: sums of products of one output that are rotated differently.
        switched_after: key switches after products, over one output.
        inputs: ciphertexts of the layer's input.
        outputs: ciphertexts of the layer's output.
        keys: distinct rotations; each needs a key.
    """

    rotations: int
    products: int
    additions: int
    to_ntt: int
    from_ntt: int
    summed: int
    switched_before: int
    turned_before: int
    parts: int
    switched_after: int
    inputs: int
    outputs: int
    keys: int


@dataclass(frozen=True, kw_only=True)
class Packing:
    """Packing of a layer's channels into ciphertexts of one ring dimension.

    Attributes:
        shape: the layer.
        ring: ring dimension, the number of slots of a ciphertext.
    """

    shape: LayerShape
    ring: int

    @property
    def row(self) -> int:
        """Number of slots in one of the two rows of a ciphertext."""
        return self.ring // 2

    @property
    def pieces(self) -> int:
        """Ciphertexts that an image is divided into, if it is larger than a row."""
        return -(-self.shape.pixels // self.row)

    @property
    def blocks(self) -> int:
        """Channels of a row: a power of two, no larger than the layer needs with two rows."""
        most = _power_of_two_below(max(self.row // self.shape.pixels, 1))
        channels = max(self.shape.channels, self.shape.filters)
        return min(most, _power_of_two_above(-(-channels // 2)))

    @property
    def pitch(self) -> int:
        """Slots from one channel of a row to the next."""
        return self.row // self.blocks

    @property
    def inputs(self) -> int:
        """Number of ciphertexts that hold the input of one piece of the image."""
        return -(-self.shape.channels // (2 * self.blocks))

    @property
    def outputs(self) -> int:
        """Ciphertexts of the output, of one piece of the image."""
        return -(-self.shape.filters // (2 * self.blocks))

    def place(self, channel: int) -> tuple[int, int, int]:
        """Return the ciphertext, the row and the block in which a channel is packed."""
        ciphertext, rest = divmod(channel, 2 * self.blocks)
        return ciphertext, *divmod(rest, self.blocks)

    @cached_property
    def diagonals(self) -> Ints:
        """Distinct diagonals (output, input, swap, shift) of all pairs of channels, (d, 4).

        ``swap`` is 1 if the channels stand in different rows; ``shift`` is the number of blocks
        that the input moves down.
        """
        shape, blocks = self.shape, self.blocks
        channels, filters = np.arange(shape.channels), np.arange(shape.filters)
        parts = []
        for group in range(shape.groups):
            own = channels[channels // (shape.channels // shape.groups) == group]
            made = filters[filters // (shape.filters // shape.groups) == group]
            into, begin = (grid.ravel() for grid in np.meshgrid(made, own, indexing="ij"))
            output, out_rest = np.divmod(into, 2 * blocks)
            source, in_rest = np.divmod(begin, 2 * blocks)
            swap = (out_rest // blocks) ^ (in_rest // blocks)
            shift = (in_rest - out_rest) % blocks
            key = ((output * self.inputs + source) * 2 + swap) * blocks + shift
            parts.append(np.unique(key))
        keys = np.unique(np.concatenate(parts))
        keys, shift = np.divmod(keys, blocks)
        keys, swap = np.divmod(keys, 2)
        output, source = np.divmod(keys, self.inputs)
        return np.stack([output, source, swap, shift], axis=1)

    def counts(self, schedule: str) -> OperationCounts:
        """Return the operations of the layer under one of :data:`SCHEDULES`."""
        return _COUNTS[schedule](self)

    def _outputs_of(self) -> tuple[Ints, Ints]:
        """Return the distinct (output, swap, shift) and (input, swap, shift) of the diagonals."""
        rows = self.diagonals
        return np.unique(rows[:, [0, 2, 3]], axis=0), np.unique(rows[:, 1:], axis=0)


def _rotate_then_multiply(packing: Packing) -> OperationCounts:
    offsets, rows = len(packing.shape.offsets), packing.diagonals
    _, sources = packing._outputs_of()  # noqa: SLF001 - of this module
    copies = len(sources) * offsets
    swapped = len({source for source, swap, _ in sources.tolist() if swap})
    turned = copies - int((sources[:, 2] == 0).sum())
    before = offsets + (rows[:, 2] * offsets) - (rows[:, 3] == 0)
    return _counts(
        packing,
        rotations=turned + swapped,
        to_ntt=copies,
        from_ntt=packing.outputs,
        switches=_Switches(
            before=before,
            turned=rows[:, 2] * (offsets - (rows[:, 3] == 0)),
            parts=np.ones(packing.outputs, dtype=np.int64),
            after=np.zeros(packing.outputs, dtype=np.int64),
        ),
        keys=_distinct_turns(packing, sources) + bool(swapped),
    )


def _multiply_then_rotate(packing: Packing) -> OperationCounts:
    offsets = len(packing.shape.offsets)
    results, _ = packing._outputs_of()  # noqa: SLF001
    turned = offsets - (results[:, 2] == 0)
    after = np.bincount(results[:, 0], turned, packing.outputs).astype(np.int64)
    after += _has_swap(packing, results)
    return _counts(
        packing,
        rotations=int(after.sum()),
        to_ntt=packing.inputs,
        from_ntt=len(results) * offsets,
        switches=_Switches(
            before=np.zeros(len(packing.diagonals), dtype=np.int64),
            turned=np.zeros(len(packing.diagonals), dtype=np.int64),
            parts=np.ones(packing.outputs, dtype=np.int64),
            after=after,
        ),
        keys=_distinct_turns(packing, results) + bool(_has_swap(packing, results).any()),
    )


def _count_mixed(packing: Packing) -> OperationCounts:
    offsets = len(packing.shape.offsets)
    results, _ = packing._outputs_of()  # noqa: SLF001
    after = np.bincount(results[:, 0], results[:, 2] != 0, packing.outputs).astype(np.int64)
    after += _has_swap(packing, results)
    shifts = len(set(results[:, 2].tolist()) - {0})
    return _counts(
        packing,
        rotations=packing.inputs * (offsets - 1) + int(after.sum()),
        to_ntt=packing.inputs * offsets,
        from_ntt=len(results),
        switches=_Switches(
            before=np.full(len(packing.diagonals), offsets - 1),
            turned=np.zeros(len(packing.diagonals), dtype=np.int64),
            parts=np.bincount(results[:, 0], minlength=packing.outputs),
            after=after,
        ),
        keys=offsets - 1 + shifts + bool(_has_swap(packing, results).any()),
    )


_COUNTS = dict(
    zip(SCHEDULES, (_rotate_then_multiply, _multiply_then_rotate, _count_mixed), strict=True)
)


@dataclass(frozen=True, slots=True)
class _Switches:
    """Key switches before products, by diagonal, and after products, by output."""

    before: Ints
    turned: Ints
    parts: Ints
    after: Ints


def _counts(
    packing: Packing,
    *,
    rotations: int,
    to_ntt: int,
    from_ntt: int,
    switches: _Switches,
    keys: int,
) -> OperationCounts:
    """Return the counts of all pieces of the image; counts that set the noise are maxima.

    The maximum of each such count is over the output ciphertexts.
    """
    outputs, rows, offsets = packing.outputs, packing.diagonals, len(packing.shape.offsets)
    summed = np.bincount(rows[:, 0], minlength=outputs) * offsets
    pieces, products = packing.pieces, len(rows) * offsets
    return OperationCounts(
        rotations=rotations * pieces,
        products=products * pieces,
        additions=(products - outputs) * pieces,
        to_ntt=to_ntt * pieces,
        from_ntt=from_ntt * pieces,
        summed=int(summed.max()),
        switched_before=int(np.bincount(rows[:, 0], switches.before, outputs).max()),
        turned_before=int(np.bincount(rows[:, 0], switches.turned, outputs).max()),
        parts=int(switches.parts.max()),
        switched_after=int(switches.after.max()),
        inputs=packing.inputs * pieces,
        outputs=outputs * pieces,
        keys=keys,
    )


def _has_swap(packing: Packing, results: Ints) -> Ints:
    """Return 1 for each output to which some channel of the other row contributes, (outputs,)."""
    swapped = np.bincount(results[:, 0], results[:, 1], packing.outputs)
    return (swapped > 0).astype(np.int64)


def _distinct_turns(packing: Packing, of: Ints) -> int:
    """Return the number of distinct rotations of rows by a shift and a window position."""
    width, row = packing.shape.width, packing.row
    shifts = set((of[:, 2] * packing.pitch).tolist())
    moves = {down * width + right for down, right in packing.shape.offsets}
    return len({(shift + move) % row for shift in shifts for move in moves} - {0})


def _power_of_two_below(value: int) -> int:
    return 1 << (value.bit_length() - 1)


def _power_of_two_above(value: int) -> int:
    return 1 << max(value - 1, 0).bit_length()
