"""Hooks (taps) on the activations of a transformer, which round or record them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from dse_evaluators.formats.arrays import Single
from dse_evaluators.formats.format import Format
from dse_evaluators.workloads.workload import Signals


@dataclass(frozen=True, slots=True, kw_only=True)
class Taps:
    """Functions applied to each layer's inputs (by layer name), and to keys and values."""

    inputs: Callable[[str, Tensor], Tensor]
    cached: Callable[[Tensor], Tensor]  # (n, heads, t, numbers of a head)


def pass_through() -> Taps:
    """Return taps (hooks) that leave the activations unchanged."""
    return Taps(inputs=lambda _, signal: signal, cached=lambda signal: signal)


def rounding(signals: Signals) -> Taps:
    """Return taps that round activations, keys and values to their formats.

    Scales are computed along a layer's inputs, separately for each position; the scales of keys and
    values also separately for each head.
    """
    return Taps(
        inputs=lambda name, signal: torch.tensor(signals.rounded(name, signal.numpy())),
        cached=lambda signal: _round_signal(signal, signals.kv_cache),
    )


def watching(seen: dict[str, Single]) -> Taps:
    """Return taps (hooks) that record the inputs of each layer, (n, inputs), in ``seen``."""

    def inputs(name: str, signal: Tensor) -> Tensor:
        rows = signal.flatten(0, -2).numpy()
        seen[name] = np.concatenate([seen[name], rows]) if name in seen else rows.copy()
        return signal

    return Taps(inputs=inputs, cached=lambda signal: signal)


def _round_signal(signal: Tensor, word: Format | None) -> Tensor:
    return signal if word is None else torch.tensor(word.quantize(signal.numpy()))
