"""Scaled dot-product attention, as the families of transformers share it."""

from __future__ import annotations

import torch
from torch import Tensor


def attend(
    queries: Tensor,  # (n, heads, t, width)
    keys: Tensor,  # (n, key heads, t, width)
    values: Tensor,  # (n, key heads, t, width)
    mask: Tensor,  # broadcast to (n, heads, t, t)
    *,
    scale: float,
    cap: float | None = None,
) -> Tensor:
    """Compute attention; return the weighted values of all heads, (n, t, heads * width).

    Args:
        queries: the queries.
        keys: the keys; their heads are shared by equal numbers of the queries' heads.
        values: the values; their heads are shared by equal numbers of the queries' heads.
        mask: 0 where a position attends to another, else a large negative number.
        scale: factor of the scores.
        cap: bound of the scores, approached by a hyperbolic tangent.

    Source:
        Vaswani et al.: Attention Is All You Need, 2017, eq. 1; Ainslie et al.: GQA, 2023;
        Gemma Team: Gemma 2, 2024, section 2 (logit soft-capping).
    """
    shared = queries.shape[1] // keys.shape[1]
    if shared > 1:
        keys, values = (one.repeat_interleave(shared, dim=1) for one in (keys, values))
    scores = queries @ keys.transpose(-1, -2) * scale
    if cap is not None:
        scores = torch.tanh(scores / cap) * cap
    mixed = (scores + mask).softmax(dim=-1) @ values
    return mixed.transpose(1, 2).flatten(2)


def divide_heads(signal: Tensor, width: int) -> Tensor:
    """Return a projection divided into heads, (n, heads, t, width).

    Args:
        signal: the projection, (n, t, heads * width).
        width: width of a head.
    """
    count, length, _ = signal.shape
    return signal.reshape(count, length, -1, width).transpose(1, 2)


def causal_mask(length: int, window: int | None = None) -> Tensor:
    """Return the causal attention mask, (t, t): 0 where a position attends to another.

    Elsewhere the mask is a large negative number.

    Args:
        length: number of positions, t.
        window: number of positions, its own included, that a position attends to; all if ``None``.
    """
    places = torch.arange(length)
    distance = places[:, None] - places[None, :]
    hidden = distance < 0
    if window is not None:
        hidden |= distance >= window
    return torch.zeros(length, length).masked_fill(hidden, _least())


def padding_mask(mask: Tensor, given: Tensor | None) -> Tensor:
    """Return a mask that also hides the padding of each example, (n, 1, t, t) or (t, t).

    Args:
        mask: the mask of all examples, (t, t).
        given: 1 for tokens and 0 for padding, (n, t); ``None`` if no example is padded.
    """
    if given is None:
        return mask
    return mask + torch.where(given[:, None, None, :] != 0, 0.0, _least())


def _least() -> float:
    return torch.finfo(torch.float32).min / 2  # two masks add without overflow
