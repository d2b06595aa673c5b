"""Texts to be written: how long they become, and how long somebody guesses that they become."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from dse.core.values import Floats, Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """Distribution of sequences: lognormal in tokens, of ``spread`` in the logarithm."""

    count: int
    median: float
    spread: float
    longest: int
    seed: int


@dataclass(frozen=True, slots=True)
class Texts:
    """Tokens of each text, and the two draws of whoever guesses them; all (count,)."""

    tokens: Ints
    luck: Floats
    side: Floats


@cache
def texts_of(stream: Stream) -> Texts:
    """The texts of a stream, drawn once, so that all designs see the same."""
    rng = np.random.default_rng(stream.seed)
    drawn = stream.median * np.exp(stream.spread * rng.standard_normal(stream.count))
    tokens = np.clip(np.ceil(drawn), 1, stream.longest).astype(np.int64)
    return Texts(tokens, rng.random(stream.count), rng.random(stream.count))


def edges(buckets: int, kind: str, stream: Stream) -> Ints:
    """The most tokens of each bucket, (buckets,): equally wide ones, or of equally many texts."""
    shares = np.arange(1, buckets + 1) / buckets
    if kind == "linear":
        found = np.ceil(shares * stream.longest)
    else:
        found = np.ceil(np.quantile(texts_of(stream).tokens, shares))
        found[-1] = stream.longest
    return found.astype(np.int64)


def guess_lengths(texts: Texts, most: Ints, accuracy: float) -> Ints:
    """Return the guesses of a bucket classifier: the most tokens of the right bucket.

    Where it is wrong, those of a neighbouring bucket.

    Args:
        texts: who is right about one of them at some accuracy is so at every higher one.
        most: of each bucket.
        accuracy: the share of texts whose bucket is told.
    """
    right = np.searchsorted(most, texts.tokens)
    wrong = np.where(texts.side < 0.5, right - 1, right + 1)
    last = len(most) - 1
    # At the ends there is one bucket beside it, or none.
    wrong = np.where(wrong < 0, min(1, last), np.where(wrong > last, max(last - 1, 0), wrong))
    told: Ints = most[np.where(texts.luck < accuracy, right, wrong)]
    return told
