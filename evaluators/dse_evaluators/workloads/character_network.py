"""Transformer that predicts the next character; its widths follow from its weight tensors."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor
from torch.nn import functional

from dse_evaluators.workloads.taps import Taps

WIDTH = 96
HEAD = 32
BLOCKS = 3
_SMALLEST = 1e-5  # avoids division by zero in the norm
_SLOWEST = 10_000.0

Tensors = Mapping[str, Tensor]


def logits(
    tensors: Tensors,
    codes: Tensor,  # (n, t)
    taps: Taps,
) -> Tensor:
    """Run the character language model; return the logits of each next character, (n, t, symbols).

    Heads, neurons and blocks are those whose weights are present: without
    ``blocks.0.attention.qkv`` block 0 has no attention, without ``blocks.0.ffn.up`` no feed-forward
    network. Hence a network without the last blocks computes an early exit. The residual stream may
    be narrower, too: its norm divides by :data:`WIDTH` in any case, as if the missing elements were
    zero. If there is a matrix ``blocks.0.attention.crossing`` (or ``.ffn.crossing``), (after,
    before), the residual path around the attention (or feed-forward network) is multiplied by that
    matrix.

    Source:
        Vaswani et al., Attention Is All You Need, 2017; Zhang, Sennrich, Root Mean Square Layer
        Normalization, 2019, eq. 4; Su et al., RoFormer, 2021, eq. 34; Ashkboos et al., SliceGPT,
        2024, section 3 (crossings).
    """
    stream = tensors["embed"][codes]
    for block in range(BLOCKS):
        for part, weight, change in (("attention", "qkv", _attention), ("ffn", "up", _ffn)):
            name = f"blocks.{block}.{part}"
            if f"{name}.{weight}" in tensors:
                added = change(tensors, name, stream, taps)
                stream = _past(tensors, name, stream) + added
    return _linear(tensors, "head", _normalize(stream, tensors["norm"]), taps)


def _attention(tensors: Tensors, name: str, stream: Tensor, taps: Taps) -> Tensor:
    """Return the output of causal multi-head attention with rotary embedding, per position."""
    signal = _normalize(stream, tensors[f"{name}.norm"])
    mixed = _linear(tensors, f"{name}.qkv", signal, taps)
    count, length, _ = mixed.shape
    heads = mixed.view(count, length, 3, -1, HEAD).permute(2, 0, 3, 1, 4)
    block = int(name.split(".")[1])
    queries, keys, values = (
        _rotate_heads(heads[0]),
        taps.cached("keys", block, _rotate_heads(heads[1])),
        taps.cached("values", block, heads[2]),
    )
    found = functional.scaled_dot_product_attention(queries, keys, values, is_causal=True)
    return _linear(tensors, f"{name}.out", found.transpose(1, 2).flatten(2), taps)


def _ffn(tensors: Tensors, name: str, stream: Tensor, taps: Taps) -> Tensor:
    """Return the output of a block's feed-forward part for each position."""
    signal = _normalize(stream, tensors[f"{name}.norm"])
    inner = functional.gelu(_linear(tensors, f"{name}.up", signal, taps))
    return _linear(tensors, f"{name}.down", inner, taps)


def _linear(tensors: Tensors, name: str, signal: Tensor, taps: Taps) -> Tensor:
    return functional.linear(taps.inputs(name, signal), tensors[name])


def _normalize(stream: Tensor, gain: Tensor) -> Tensor:
    power = stream.square().sum(-1, keepdim=True) / WIDTH
    return stream * torch.rsqrt(power + _SMALLEST) * gain


def _past(tensors: Tensors, name: str, stream: Tensor) -> Tensor:
    """Return the residual stream that bypasses an attention or feed-forward part.

    If the part has a ``crossing`` matrix, the stream is multiplied by it.
    """
    crossing = tensors.get(f"{name}.crossing")
    return stream if crossing is None else functional.linear(stream, crossing)


def _rotate_heads(
    heads: Tensor,  # (n, heads, t, HEAD)
) -> Tensor:
    """Apply rotary position embedding to queries or keys."""
    rates = _SLOWEST ** (-torch.arange(HEAD // 2) / (HEAD // 2))
    angles = torch.arange(heads.shape[2])[:, None] * rates
    left, right = heads.chunk(2, dim=-1)
    cosine, sine = angles.cos(), angles.sin()
    return torch.cat([left * cosine - right * sine, right * cosine + left * sine], dim=-1)
