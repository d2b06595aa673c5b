"""Published sizes of transformers, by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from dse_evaluators.csv_records import read_records


@dataclass(frozen=True, slots=True, kw_only=True)
class Transformer:
    """Sizes of a transformer; the defaults are those of a Llama.

    ``positions`` is the number of learnt position embeddings; 0 means rotary embeddings, for which
    a sequence may have any length. If ``biased``, layers and norms have biases. A ``causal`` model
    predicts the next token with an LM head that may be ``tied`` to the embedding; other models have
    a dense layer on the first token. If ``head_width`` is 0, the query heads together are as wide
    as ``hidden``. A layer with several ``experts``, each ``ffn`` wide, routes every token to
    ``active_experts`` of them.
    """

    name: str
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    ffn: int
    vocabulary: int
    source: str
    gated: bool = True
    biased: bool = False
    causal: bool = True
    tied: bool = False
    positions: int = 0
    segments: int = 0
    embedding_norm: bool = False
    final_norm: bool = True
    head_width: int = 0
    experts: int = 1
    active_experts: int = 1

    @property
    def head(self) -> int:
        """Width of one attention head."""
        return self.head_width or self.hidden // self.heads

    @property
    def together(self) -> int:
        """Total width of the queries, keys and values of one token."""
        return (self.heads + 2 * self.kv_heads) * self.head


TRANSFORMERS: Mapping[str, Transformer] = read_records(
    Path(__file__).with_name("transformers.csv"), Transformer
)
"""Rows of ``transformers.csv``, by name."""
