"""Deep learning recommendation model (DLRM): embeddings, pairwise products and two MLPs."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import Tensor
from torch.nn import functional

BOTTOM = ("bottom1", "bottom2")
TOP = ("top1", "top2", "top3")

Given = Callable[[str, Tensor], Tensor]
"""Function of a layer's name and inputs that returns the inputs to use, such as rounded ones."""


def keep_inputs(_: str, inputs: Tensor) -> Tensor:
    """Return a layer's inputs unchanged, where no number format rounds them."""
    return inputs


def scores(
    weights: Mapping[str, Tensor],
    ids: Tensor,  # (n, tables)
    features: Tensor,  # (n, features)
    given: Given = keep_inputs,
) -> Tensor:
    """Run the recommender; return the log odds that each rated movie is liked, (n,).

    The bottom MLP maps the features to a vector as long as the embeddings. The top MLP reads this
    vector and the dot products of every two vectors. All widths are those of the weights, and the
    tables are in the order of the columns of ``ids``.

    Source:
        Naumov et al.: Deep Learning Recommendation Model for Personalization and Recommendation
        Systems, 2019, section 2 and figure 1.
    """
    vector = features
    for name in BOTTOM:
        vector = torch.relu(_apply_linear(weights, name, vector, given))
    tables = [weight for name, weight in weights.items() if name.startswith("embed_")]
    looked_up = (table[column] for table, column in zip(tables, ids.T, strict=True))
    vectors = given("products", torch.stack([vector, *looked_up], dim=1))
    products = vectors @ vectors.transpose(1, 2)  # (n, tables + 1, tables + 1)
    first, second = torch.triu_indices(vectors.shape[1], vectors.shape[1], offset=1)
    signal = torch.cat([vector, products[:, first, second]], dim=1)
    for name in TOP[:-1]:
        signal = torch.relu(_apply_linear(weights, name, signal, given))
    return _apply_linear(weights, TOP[-1], signal, given)[:, 0]


def _apply_linear(weights: Mapping[str, Tensor], name: str, inputs: Tensor, given: Given) -> Tensor:
    weight, bias = weights[f"{name}.weight"], weights[f"{name}.bias"]
    return functional.linear(given(name, inputs), weight, bias)
