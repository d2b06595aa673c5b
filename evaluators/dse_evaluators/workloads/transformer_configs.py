"""Transformers as rows: what tells one from another."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Transformer:
    """The sizes of a transformer; what is not told is as in a Llama.

    ``positions`` are learnt vectors, one a place; with none, places are told by rotation and a
    text may be of any length. ``biased`` layers and norms have biases, the others none. A
    ``causal`` model tells the next token, from a head that may be ``tied`` to the embedding; the
    others have a dense layer on the first token. With no ``head_width`` the heads of the queries
    are together as wide as the stream.
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

    @property
    def head(self) -> int:
        """Numbers in one head."""
        return self.head_width or self.hidden // self.heads

    @property
    def together(self) -> int:
        """Numbers in the queries, keys and values of one token."""
        return (self.heads + 2 * self.kv_heads) * self.head


_LLAMA2 = "Touvron et al.: Llama 2, 2023, and the published configurations"
_LLAMA3 = "Dubey et al.: The Llama 3 Herd of Models, 2024, table 3"

TRANSFORMERS: Mapping[str, Transformer] = {
    row.name: row
    for row in (
        Transformer(
            name="bert-base",
            layers=12,
            hidden=768,
            heads=12,
            kv_heads=12,
            ffn=3072,
            vocabulary=30_522,
            gated=False,
            biased=True,
            causal=False,
            positions=512,
            segments=2,
            embedding_norm=True,
            final_norm=False,
            source="Devlin et al.: BERT, 2019, section 3",
        ),
        Transformer(
            name="gpt2",
            layers=12,
            hidden=768,
            heads=12,
            kv_heads=12,
            ffn=3072,
            vocabulary=50_257,
            gated=False,
            biased=True,
            tied=True,
            positions=1024,
            source="Radford et al.: Language Models are Unsupervised Multitask Learners, 2019",
        ),
        Transformer(
            name="llama2-7b",
            layers=32,
            hidden=4096,
            heads=32,
            kv_heads=32,
            ffn=11_008,
            vocabulary=32_000,
            source=_LLAMA2,
        ),
        Transformer(
            name="llama2-13b",
            layers=40,
            hidden=5120,
            heads=40,
            kv_heads=40,
            ffn=13_824,
            vocabulary=32_000,
            source=_LLAMA2,
        ),
        Transformer(
            name="llama2-70b",
            layers=80,
            hidden=8192,
            heads=64,
            kv_heads=8,
            ffn=28_672,
            vocabulary=32_000,
            source=_LLAMA2,
        ),
        Transformer(
            name="llama3-8b",
            layers=32,
            hidden=4096,
            heads=32,
            kv_heads=8,
            ffn=14_336,
            vocabulary=128_256,
            source=_LLAMA3,
        ),
        Transformer(
            name="llama3-70b",
            layers=80,
            hidden=8192,
            heads=64,
            kv_heads=8,
            ffn=28_672,
            vocabulary=128_256,
            source=_LLAMA3,
        ),
        Transformer(
            name="llama3-405b",
            layers=126,
            hidden=16_384,
            heads=128,
            kv_heads=8,
            ffn=53_248,
            vocabulary=128_256,
            source=_LLAMA3,
        ),
        Transformer(
            name="qwen3-32b",
            layers=64,
            hidden=5120,
            heads=64,
            kv_heads=8,
            ffn=25_600,
            vocabulary=151_936,
            head_width=128,
            source="Yang et al.: Qwen3 Technical Report, 2025, and the published configuration",
        ),
    )
}
