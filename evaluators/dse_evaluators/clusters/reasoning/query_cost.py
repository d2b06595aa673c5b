"""Floating-point operations and KV cache traffic of answering one query."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dse.core.values import Floats, Mask


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """Query of a reasoning model: its prompt and the answers sampled for it, in n designs."""

    weights: Floats
    query_width: Floats
    """Elements of one token's query vectors over all layers: heads x head width x layers."""
    key_width: Floats
    """Elements of one token's key vectors over all layers."""
    prompt: Floats
    written: Floats
    """Tokens of each answer."""
    trials: Floats
    """Answers to one query."""
    cache_bytes: Floats
    """Bytes of one cached element."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SparseAttention:
    """Sparsity of the attention while generating an answer; every field is (n,)."""

    some: Mask
    """Whether attention is sparse; if not, each token attends to all earlier ones."""
    budget: Floats
    """Maximum number of tokens that one token attends to."""
    block: Floats
    """Tokens per block that share one search key; 0: the search is free."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryCost:
    """Operations and KV cache bytes read for all answers to a query; every field is (n,)."""

    linear_flops: Floats
    attention_flops: Floats
    search_flops: Floats
    cache_bytes: Floats
    search_bytes: Floats

    @property
    def flops(self) -> Floats:
        return self.linear_flops + self.attention_flops + self.search_flops


def cost(query: Query, sparse: SparseAttention) -> QueryCost:
    """Compute operations and KV cache bytes read for all answers to a query.

    Bytes of weights are left out, because a batch of many queries reads them once. With dense
    attention all answers share the reads of the prompt's KV cache; with sparse attention each
    answer reads its own selection.

    Source:
        Sadhukhan et al.: Kinetics: Rethinking Test-Time Scaling Laws, 2025, by the cost model of
        its code (cost_model/utils.py at e776559). The sum over tokens within a budget is exact
        here: the published code has the wrong sign in one of two functions, and is too small for
        answers that end before the budget is full.
    """
    looked = np.where(
        sparse.some,
        _looked_at(query, sparse.budget),
        query.written * (query.prompt + query.written / 2.0),
    )
    # Each answer reads its own tokens; the prompt is read once if dense, once per answer if sparse.
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
    """Return the number of (token, attended token) pairs of one answer, summed over its tokens."""
    growing = np.clip(budget - query.prompt, 0.0, query.written)
    full = query.written - growing
    return growing * (query.prompt + growing / 2.0) + budget * full
