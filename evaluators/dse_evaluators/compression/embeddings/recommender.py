"""Recommender model whose embeddings are single tables, or products of two during training."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

_START = 0.1  # standard deviation of an initial embedding
_HIDDEN = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Widths:
    """Dimensions of a recommender; ``inner`` is 0 if each embedding is a single table."""

    categories: tuple[int, ...]
    dense: int  # number of numeric features
    embedding: int
    inner: int = 0

    @property
    def dots(self) -> int:
        """Number of pairs of feature vectors (one per category, one of all dense features)."""
        return math.comb(len(self.categories) + 1, 2)

    @property
    def stored(self) -> int:
        """Number of parameters at inference, with one table per embedding."""
        return sum(self.categories) * self.embedding + self._head

    @property
    def trained(self) -> int:
        """Number of embedding parameters during training."""
        if not self.inner:
            return self.stored
        pairs = (rows + self.embedding for rows in self.categories)
        return self.inner * sum(pairs) + self._head

    @property
    def _head(self) -> int:
        hidden = _HIDDEN * (self.dots + self.embedding) + _HIDDEN
        return self.dense * self.embedding + hidden + _HIDDEN + 1


@dataclass(frozen=True, slots=True)
class Recommender:
    """Recommender of embeddings, their pairwise dot products, and a perceptron on top.

    Source:
        Naumov et al., Deep Learning Recommendation Model for Personalization and Recommendation
        Systems, 2019, section 2 (dot products of all pairs of vectors, and the dense vector).
    """

    tables: tuple[tuple[Tensor, ...], ...]  # each (categories, d), or (categories, k) and (k, d)
    dense: Tensor  # (dense, d)
    weights: tuple[Tensor, ...]  # hidden weight and bias, last weight and bias

    @property
    def tensors(self) -> list[Tensor]:
        """Trainable tensors of the recommender: embedding tables, dense layer and perceptron."""
        return [*(part for table in self.tables for part in table), self.dense, *self.weights]

    def collapse_tables(self) -> Recommender:
        """Return an equivalent recommender with one table per categorical feature."""
        return Recommender(
            tuple((_whole(table),) for table in self.tables), self.dense, self.weights
        )

    def logits(
        self,
        categories: Tensor,  # (n, fields)
        dense: Tensor,  # (n, dense)
    ) -> Tensor:  # (n,)
        """Return the logits of the probability that the user likes the movie, (n,)."""
        fields = zip(categories.T, self.tables, strict=True)
        vectors = [functional.embedding(codes, _whole(table)) for codes, table in fields]
        vectors.append(dense @ self.dense)
        stacked = torch.stack(vectors, dim=1)
        left, right = torch.triu_indices(len(vectors), len(vectors), offset=1)
        dots = (stacked @ stacked.transpose(1, 2))[:, left, right]
        weight, bias, last, last_bias = self.weights
        hidden = functional.relu(
            functional.linear(torch.cat([vectors[-1], dots], dim=1), weight, bias)
        )
        return functional.linear(hidden, last, last_bias)[:, 0]


def init_recommender(widths: Widths, chance: torch.Generator) -> Recommender:
    """Return an untrained recommender, whose initial embeddings have equal variance.

    The variance is the same with one table per feature as with a product of two tables.
    """

    def drawn(shape: Sequence[int], size: float) -> Tensor:
        return (torch.randn(tuple(shape), generator=chance) * size).requires_grad_()

    def table(rows: int) -> tuple[Tensor, ...]:
        if not widths.inner:
            return (drawn((rows, widths.embedding), _START),)
        right = drawn((widths.inner, widths.embedding), widths.inner**-0.5)
        return drawn((rows, widths.inner), _START), right

    given = widths.dots + widths.embedding
    return Recommender(
        tuple(table(rows) for rows in widths.categories),
        drawn((widths.dense, widths.embedding), widths.dense**-0.5),
        (
            drawn((_HIDDEN, given), math.sqrt(2 / given)),
            torch.zeros(_HIDDEN).requires_grad_(),
            drawn((1, _HIDDEN), _HIDDEN**-0.5),
            torch.zeros(1).requires_grad_(),
        ),
    )


def _whole(table: tuple[Tensor, ...]) -> Tensor:
    """Return the embedding table, as the product of its factors if there are two."""
    return table[0] if len(table) == 1 else table[0] @ table[1]
