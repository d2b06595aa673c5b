"""Cost of a query in operations, and in cache bytes that are worth so many operations."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dse.core.values import Floats, Mask


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """A prompt that is answered several times over; every field is (n,)."""

    weights: Floats
    query_width: Floats
    """Numbers in the queries of one token in all layers: heads x width x layers."""
    key_width: Floats
    """Numbers in the keys of one token in all layers."""
    prompt: Floats
    written: Floats
    """Tokens of each answer."""
    trials: Floats
    cache_bytes: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class SparseAttention:
    """Tokens that an answer attends to; every field is (n,)."""

    some: Mask
    """False: at all of them."""
    budget: Floats
    """The most tokens that one token looks at."""
    block: Floats
    """Tokens that share the key by which they are looked for; 0: found for nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryCost:
    """Operations and bytes of a query; every field is (n,)."""

    linear_flops: Floats
    attention_flops: Floats
    search_flops: Floats
    cache_bytes: Floats
    search_bytes: Floats

    @property
    def flops(self) -> Floats:
        return self.linear_flops + self.attention_flops + self.search_flops


def cost(query: Query, sparse: SparseAttention) -> QueryCost:
    """The cost of all answers to a query.

    Weights are read once for many queries that are answered together, so their bytes are left
    out. Answers share the prompt's cache where each looks at all of it; a sparse one picks its own.

    Source:
        Sadhukhan et al.: Kinetics: Rethinking Test-Time Scaling Laws, 2025, by the cost model of
        its code (cost_model/utils.py at e776559). The sum over tokens within a budget is exact
        here: theirs has the wrong sign in one of two functions, and is too small for answers that
        end before the budget is full.
    """
    looked = np.where(
        sparse.some,
        _looked_at(query, sparse.budget),
        query.written * (query.prompt + query.written / 2.0),
    )
    # What is read: all answers' own tokens, and the prompt once for all or once for each.
    read = np.where(
        sparse.some,
        looked * query.trials,
        query.written * (query.prompt + query.written * query.trials / 2.0),
    )
    searched = query.written * (2.0 * query.prompt + query.written)
    found = query.written * (2.0 * query.prompt + query.written * query.trials)
    share = np.where(sparse.some & (sparse.block > 0), 1.0 / np.maximum(sparse.block, 1.0), 0.0)
    return QueryCost(
        linear_flops=2.0 * query.weights * query.written * query.trials,
        attention_flops=4.0 * looked * query.query_width * query.trials,
        search_flops=searched * share * query.query_width * query.trials,
        cache_bytes=2.0 * query.cache_bytes * read * query.key_width,
        search_bytes=query.cache_bytes / 2.0 * found * share * query.key_width,
    )


def _looked_at(query: Query, budget: Floats) -> Floats:
    """The sum over an answer's tokens of how many tokens each looks at."""
    growing = np.clip(budget - query.prompt, 0.0, query.written)
    full = query.written - growing
    return growing * (query.prompt + growing / 2.0) + budget * full
