"""GEMMs of a training step: forward, input gradient and weight gradient of each convolution."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dse.core.values import Floats, Ints, Mask
from dse_evaluators.accelerators.training.chains import Conv


@dataclass(frozen=True, slots=True, kw_only=True)
class Channels:
    """Input channels and filters of l convolutions in n designs; fields are (l, n) or (l, 1)."""

    inputs: Floats
    outputs: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingProducts:
    """p GEMMs of m x k (streamed) by k x n (stationary), for n designs; fields are (p, n).

    ``inputs``, ``outputs`` and ``weights`` are operand sizes that count each number once, although
    the m x k matrix of a convolution repeats inputs that windows share.
    """

    m: Floats
    n: Floats
    k: Floats
    inputs: Floats
    """Elements of the layer's input, or of its gradient."""
    outputs: Floats
    weights: Floats
    sums_samples: Mask
    """(p, 1): whether k runs over the samples, as it does in the gradient of the weights."""
    place: Ints
    """(p,): index of the convolution that the GEMM belongs to."""

    @property
    def macs(self) -> Floats:
        """Multiply-accumulates of each GEMM, (p, n)."""
        return self.m * self.n * self.k


class ConvolutionTraining:
    """GEMMs of a network's convolutions in training, for any number of channels and samples.

    Forward: windows by filters. Gradient of the input: a transposed convolution, with one GEMM for
    each offset within the stride (so that no zeros between outputs are multiplied), and none for
    the network's own input. Gradient of the weights: transposed windows by the gradient of the
    output.
    """

    def __init__(self, convs: Sequence[Conv]) -> None:
        every = np.arange(len(convs))
        phases = [(place, taps) for place, conv in enumerate(convs) for taps in _phases(conv)]
        self._back = np.array([place for place, _ in phases], dtype=np.intp)
        self._back_taps = _column([taps for _, taps in phases])
        self._taps = _column([conv.window**2 for conv in convs])
        self._back_share = self._back_taps / self._taps[self._back]
        self._pixels = _column([conv.after**2 for conv in convs])
        self._read_pixels = _column([conv.side**2 for conv in convs])
        self._place = np.concatenate([every, self._back, every])
        self._sums = np.zeros((len(self._place), 1), dtype=bool)
        self._sums[-len(every) :] = True

    def products(self, channels: Channels, samples: Floats) -> TrainingProducts:
        """Return the GEMMs of a training step for given channels and batches of (n,) samples."""
        channels_in, filters = channels.inputs, channels.outputs  # (l, n)
        pixels, back = self._pixels * samples, self._back
        windows = self._taps * channels_in
        inputs = self._read_pixels * samples * channels_in
        outputs, weights = pixels * filters, windows * filters
        # The GEMMs of one input gradient divide its operands among them.
        share = self._back_share
        return TrainingProducts(
            m=_stack_parts(pixels, pixels[back], windows),
            n=_stack_parts(filters, channels_in[back], filters),
            k=_stack_parts(windows, self._back_taps * filters[back], pixels),
            inputs=_stack_parts(inputs, share * inputs[back], inputs),
            outputs=_stack_parts(outputs, share * outputs[back], outputs),
            weights=_stack_parts(weights, share * weights[back], weights),
            sums_samples=self._sums,
            place=self._place,
        )


def sum_rows(rows: Floats) -> Floats:
    """Sum over the first axis in a fixed order, so that rounding does not depend on the designs."""
    total: Floats = np.zeros(rows.shape[1:])
    for row in rows:
        total += row
    return total


def _phases(conv: Conv) -> list[int]:
    """Return the number of filter taps of each input-gradient GEMM, one per stride offset."""
    if conv.reads == 0:
        return []
    along = [len(range(offset, conv.window, conv.stride)) for offset in range(conv.stride)]
    return [down * across for down in along for across in along if down * across]


def _stack_parts(*parts: Floats) -> Floats:
    """Concatenate arrays along the first axis, broadcast to the same number of columns, (p, n)."""
    width = max(part.shape[1] for part in parts)
    return np.concatenate([np.broadcast_to(part, (len(part), width)) for part in parts])


def _column(values: Sequence[int]) -> Floats:
    return np.array(values, dtype=np.float64)[:, np.newaxis]
