"""Greedy decoding of a small transformer with a given precision and order of summation.

Weights are stored in one format and computed with in another, to which every result is rounded. A
matrix product is split along the reduction dimension into a given number of parts, whose sums are
added in order. This models the changes of summation order that come from another machine, batch
size or split over devices.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import erf

from dse_evaluators.formats.arrays import Single
from dse_evaluators.formats.format import Format

Codes = NDArray[np.intp]

Choice = Callable[[Single], Codes]
"""Function that chooses the next symbols, (n,), from the logits, (n, symbols)."""

HEAD = 32
_SMALLEST = np.float32(1e-5)
_SLOWEST = 10_000.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Arithmetic:
    """Simulated arithmetic: the format of every result, and the number of partial sums.

    Each dot product of a matrix product is split into ``parts`` partial sums.
    """

    rounding: Format
    parts: int

    def near(self, values: Single) -> Single:
        """Return values rounded to the nearest numbers of the simulated format."""
        return self.rounding.quantize(values)

    def product(
        self,
        signal: Single,  # (n, k)
        weight: Single,  # (m, k)
    ) -> Single:
        """Return a matrix product, (n, m), with the partial sums of each dot product rounded."""
        width = -(-signal.shape[1] // self.parts)
        total = self.near(signal[:, :width] @ weight[:, :width].T)
        for start in range(width, signal.shape[1], width):
            part = slice(start, start + width)
            total = self.near(total + self.near(signal[:, part] @ weight[:, part].T))
        return total


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoded:
    """Characters generated after the prompts, and the logits from which they were chosen."""

    codes: Codes  # (n, steps)
    logits: Single  # (n, steps, symbols)


def likeliest(logits: Single) -> Codes:
    """Return the index of the character with the largest logit in each of n rows, (n,)."""
    return logits.argmax(axis=1)


class Decoder:
    """Autoregressive decoder of a transformer, with a KV cache.

    Args:
        weights: weights of the network ``shakespeare-lm``, already rounded to their storage format.
        arithmetic: the precision and the order of summation of the computation.

    Source:
        The network is that of :mod:`dse_evaluators.workloads.character_network`.
    """

    def __init__(self, weights: Mapping[str, Single], arithmetic: Arithmetic) -> None:
        self._weights = weights
        self._arithmetic = arithmetic
        self._length = 0
        self._past: dict[str, Single] = {}

    def decode(self, prompts: Codes, steps: int, choice: Choice = likeliest) -> Decoded:
        """Decode ``steps`` characters after each of n prompts of t characters, (n, t), greedily."""
        self._past.clear()
        self._length = prompts.shape[1] + steps
        codes, seen = list(prompts.T), list[Single]()
        for place in range(self._length - 1):
            logits = self._compute_logits(codes[place], place)
            if place >= prompts.shape[1] - 1:
                seen.append(logits)
                codes.append(choice(logits))
        chosen = np.stack(codes[prompts.shape[1] :], axis=1)
        return Decoded(codes=chosen, logits=np.stack(seen, axis=1))

    def _compute_logits(self, codes: Codes, place: int) -> Single:
        """Return the logits of the character after position ``place`` in n texts, (n, symbols)."""
        near, product = self._arithmetic.near, self._arithmetic.product
        stream = near(self._weights["embed"][codes])
        for name in sorted(key[:-4] for key in self._weights if key.endswith(".qkv")):
            stream = near(stream + self._attention(name, stream, place))
            feed = name.replace("attention", "ffn")
            inner = product(self._normalize(stream, f"{feed}.norm"), self._weights[f"{feed}.up"])
            grown = near(inner * np.float32(0.5) * (1 + erf(inner * np.float32(0.5**0.5))))
            stream = near(stream + product(grown, self._weights[f"{feed}.down"]))
        return product(self._normalize(stream, "norm"), self._weights["head"])

    def _attention(self, name: str, stream: Single, place: int) -> Single:
        """Return attention of the current position over all positions so far, (n, width)."""
        near = self._arithmetic.near
        signal = self._normalize(stream, f"{name}.norm")
        mixed = self._arithmetic.product(signal, self._weights[f"{name}.qkv"])
        heads = mixed.reshape(len(mixed), 3, -1, HEAD)
        heads[:, :2] = near(_rotate_heads(heads[:, :2], place))
        keys, values = self._update_cache(name, heads[:, 1:], place)
        scores = near(keys @ heads[:, 0, :, :, None] * np.float32(HEAD**-0.5))
        shares = near(np.exp(near(scores - scores.max(axis=2, keepdims=True))))
        shares = near(shares / near(shares.sum(axis=2, keepdims=True)))
        found = near(shares.swapaxes(2, 3) @ values)
        weight = self._weights[f"{name}.out"]
        return self._arithmetic.product(found.reshape(len(found), -1), weight)

    def _update_cache(
        self,
        name: str,
        new: Single,  # (n, 2, heads, HEAD): keys and values
        place: int,
    ) -> tuple[Single, Single]:
        """Add the current position's keys and values to the cache; return those of all positions.

        Keys and values are (n, heads, t, HEAD) each, after t positions.
        """
        if name not in self._past:
            count, _, heads, _ = new.shape
            self._past[name] = np.empty((2, count, heads, self._length, HEAD), dtype=np.float32)
        past = self._past[name]
        past[:, :, :, place] = new.swapaxes(0, 1)
        return past[0, :, :, : place + 1], past[1, :, :, : place + 1]

    def _normalize(self, stream: Single, gain: str) -> Single:
        near = self._arithmetic.near
        mean: Single = np.square(stream).mean(axis=1, keepdims=True)
        root: Single = np.sqrt(near(mean + _SMALLEST))
        return near(near(stream / root) * self._weights[gain])


def _rotate_heads(
    heads: Single,  # (n, heads, HEAD)
    place: int,
) -> Single:
    """Apply the rotary position embedding to queries or keys.

    Source:
        Su et al., RoFormer, 2021, eq. 34.
    """
    rates = _SLOWEST ** (-np.arange(HEAD // 2) / (HEAD // 2))
    cosine = np.cos(place * rates).astype(np.float32)
    sine = np.sin(place * rates).astype(np.float32)
    left, right = heads[..., : HEAD // 2], heads[..., HEAD // 2 :]
    return np.concatenate([left * cosine - right * sine, right * cosine + left * sine], axis=-1)
