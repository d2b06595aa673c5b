"""Sequences of a simulated server: true output lengths and predicted ones."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from dse.core.values import Floats, Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """Lognormal distribution of output tokens; ``spread`` is the log's standard deviation."""

    count: int
    median: float
    spread: float
    longest: int
    seed: int


@dataclass(frozen=True, slots=True)
class Texts:
    """Output tokens of each sequence, and two random draws of its prediction; all (count,)."""

    tokens: Ints
    luck: Floats
    side: Floats


@cache
def texts_of(stream: Stream) -> Texts:
    """Return the sequences of a stream, cached so that all designs see the same."""
    rng = np.random.default_rng(stream.seed)
    drawn = stream.median * np.exp(stream.spread * rng.standard_normal(stream.count))
    tokens = np.clip(np.ceil(drawn), 1, stream.longest).astype(np.int64)
    return Texts(tokens, rng.random(stream.count), rng.random(stream.count))


def edges(buckets: int, kind: str, stream: Stream) -> Ints:
    """Return the upper bound of each length bucket in tokens, (buckets,).

    Buckets have equal width (``linear``) or equally many sequences.
    """
    shares = np.arange(1, buckets + 1) / buckets
    if kind == "linear":
        found = np.ceil(shares * stream.longest)
    else:
        found = np.ceil(np.quantile(texts_of(stream).tokens, shares))
        found[-1] = stream.longest
    return found.astype(np.int64)


def guess_lengths(texts: Texts, most: Ints, accuracy: float) -> Ints:
    """Return the output length that a bucket classifier predicts for each sequence, (count,).

    It is the upper bound of a bucket: the right one, or an adjacent one where the classifier is
    wrong. A sequence that is predicted right at some accuracy is predicted right at every higher
    accuracy.

    Args:
        texts: the sequences with their random draws.
        most: upper bound of each bucket in tokens, (buckets,).
        accuracy: share of sequences whose bucket is predicted right.
    """
    right = np.searchsorted(most, texts.tokens)
    wrong = np.where(texts.side < 0.5, right - 1, right + 1)
    last = len(most) - 1
    # At the ends a bucket has only one neighbour, or none if it is the only bucket.
    wrong = np.where(wrong < 0, min(1, last), np.where(wrong > last, max(last - 1, 0), wrong))
    told: Ints = most[np.where(texts.luck < accuracy, right, wrong)]
    return told
