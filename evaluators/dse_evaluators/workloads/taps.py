"""Hooks (taps) on the activations of a transformer, which round or record them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from dse_evaluators.formats.arrays import Single
from dse_evaluators.formats.format import Format
from dse_evaluators.workloads.workload import CachePart, Signals


@dataclass(frozen=True, slots=True, kw_only=True)
class Taps:
    """Hooks on a network: functions of each layer's inputs, by layer, and of keys and values."""

    inputs: Callable[[str, Tensor], Tensor]
    cached: Callable[[CachePart, int, Tensor], Tensor]  # of a block: (n, heads, t, width)


def pass_through() -> Taps:
    """Return taps (hooks) that leave the activations unchanged."""
    return Taps(inputs=lambda _, signal: signal, cached=lambda *given: given[-1])


def rounding(signals: Signals, blocks: int) -> Taps:
    """Return taps that round activations, keys and values to their formats.

    Scales are computed along a layer's inputs, separately for each position; the scales of keys and
    values also separately for each head.

    Args:
        signals: the formats.
        blocks: number of blocks with attention of the entire model.

    Raises:
        EvaluationError: formats of keys or values are neither one nor one for each block.
    """
    formats: dict[CachePart, tuple[Format | None, ...]] = {
        "keys": signals.cache_formats("keys", blocks),
        "values": signals.cache_formats("values", blocks),
    }
    return Taps(
        inputs=lambda name, signal: torch.tensor(signals.rounded(name, signal.numpy())),
        cached=lambda part, block, signal: _round_signal(signal, formats[part][block]),
    )


def watching(seen: dict[str, Single]) -> Taps:
    """Return taps (hooks) that record the inputs of each layer, (n, inputs), in ``seen``."""

    def inputs(name: str, signal: Tensor) -> Tensor:
        rows = signal.flatten(0, -2).numpy()
        seen[name] = np.concatenate([seen[name], rows]) if name in seen else rows.copy()
        return signal

    return Taps(inputs=inputs, cached=lambda *given: given[-1])


def _round_signal(signal: Tensor, word: Format | None) -> Tensor:
    return signal if word is None else torch.tensor(word.quantize(signal.numpy()))
