"""Published sizes of transformers, by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


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


_LLAMA2 = "Touvron et al.: Llama 2, 2023, and the published configurations"
_LLAMA3 = "Dubey et al.: The Llama 3 Herd of Models, 2024, table 3"

_MEGATRON = "Narayanan et al.: Efficient Large-Scale Language Model Training, SC 2021, table 1"
_KORTHIKANTI = "Korthikanti et al., 2022, table 3"
_GPTS = (
    # name, layers, width, heads, vocabulary
    ("gpt-1.7b", 24, 2304, 24, 51_200, _MEGATRON),
    ("gpt-3.6b", 30, 3072, 32, 51_200, _MEGATRON),
    ("gpt-7.5b", 36, 4096, 32, 51_200, _MEGATRON),
    ("gpt-18b", 40, 6144, 48, 51_200, _MEGATRON),
    ("gpt-39b", 48, 8192, 64, 51_200, _MEGATRON),
    ("gpt-76b", 60, 10_240, 80, 51_200, _MEGATRON),
    ("gpt-146b", 80, 12_288, 96, 51_200, _MEGATRON),
    ("gpt-310b", 96, 16_384, 128, 51_200, _MEGATRON),
    ("megatron-22b", 48, 6144, 64, 51_200, _KORTHIKANTI),
    ("gpt3-175b", 96, 12_288, 96, 51_200, _KORTHIKANTI),
    ("megatron-530b", 105, 20_480, 128, 51_200, _KORTHIKANTI),
    ("megatron-1t", 128, 25_600, 160, 51_200, _KORTHIKANTI),
    ("opt-175b", 96, 12_288, 96, 50_272, "Zhang et al.: OPT, 2022, table 1"),
)

TRANSFORMERS: Mapping[str, Transformer] = {
    row.name: row
    for row in (
        *(
            Transformer(
                name=name,
                layers=layers,
                hidden=hidden,
                heads=heads,
                kv_heads=heads,
                ffn=4 * hidden,
                vocabulary=vocabulary,
                gated=False,
                biased=True,
                tied=True,
                positions=2048,
                source=source,
            )
            for name, layers, hidden, heads, vocabulary, source in _GPTS
        ),
        Transformer(
            name="palm-540b",
            layers=118,
            hidden=18_432,
            heads=48,
            kv_heads=1,
            ffn=73_728,
            vocabulary=256_000,
            head_width=256,
            tied=True,
            source="Chowdhery et al.: PaLM, 2022, table 1",
        ),
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
            name="qwen3-0.6b",
            layers=28,
            hidden=1024,
            heads=16,
            kv_heads=8,
            ffn=3072,
            vocabulary=151_936,
            head_width=128,
            tied=True,
            source="Yang et al.: Qwen3 Technical Report, 2025, and the published configuration",
        ),
        Transformer(
            name="qwen3-1.7b",
            layers=28,
            hidden=2048,
            heads=16,
            kv_heads=8,
            ffn=6144,
            vocabulary=151_936,
            head_width=128,
            tied=True,
            source="Yang et al.: Qwen3 Technical Report, 2025, and the published configuration",
        ),
        Transformer(
            name="qwen3-4b",
            layers=36,
            hidden=2560,
            heads=32,
            kv_heads=8,
            ffn=9728,
            vocabulary=151_936,
            head_width=128,
            tied=True,
            source="Yang et al.: Qwen3 Technical Report, 2025, and the published configuration",
        ),
        Transformer(
            name="qwen3-8b",
            layers=36,
            hidden=4096,
            heads=32,
            kv_heads=8,
            ffn=12_288,
            vocabulary=151_936,
            head_width=128,
            source="Yang et al.: Qwen3 Technical Report, 2025, and the published configuration",
        ),
        Transformer(
            name="qwen3-14b",
            layers=40,
            hidden=5120,
            heads=40,
            kv_heads=8,
            ffn=17_408,
            vocabulary=151_936,
            head_width=128,
            source="Yang et al.: Qwen3 Technical Report, 2025, and the published configuration",
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
        Transformer(
            name="gpt-j-6b",
            layers=28,
            hidden=4096,
            heads=16,
            kv_heads=16,
            ffn=16_384,
            vocabulary=50_400,
            gated=False,
            biased=True,
            source="Wang, Komatsuzaki: GPT-J-6B, 2021, and the published configuration",
        ),
        Transformer(
            name="opt-30b",
            layers=48,
            hidden=7168,
            heads=56,
            kv_heads=56,
            ffn=28_672,
            vocabulary=50_272,
            gated=False,
            biased=True,
            tied=True,
            positions=2048,
            source="Zhang et al.: OPT, 2022, table 1, and the published configuration",
        ),
        Transformer(
            name="mixtral-8x7b",
            layers=32,
            hidden=4096,
            heads=32,
            kv_heads=8,
            ffn=14_336,
            vocabulary=32_000,
            experts=8,
            active_experts=2,
            source="Jiang et al.: Mixtral of Experts, 2024, table 1",
        ),
        Transformer(
            name="grok-1",
            layers=64,
            hidden=6144,
            heads=48,
            kv_heads=8,
            ffn=32_768,
            vocabulary=131_072,
            experts=8,
            active_experts=2,
            tied=True,
            source="xai-org/grok-1, 2024: the published configuration",
        ),
        Transformer(
            name="qwen3-30b-a3b",
            layers=48,
            hidden=2048,
            heads=32,
            kv_heads=4,
            ffn=768,
            vocabulary=151_936,
            head_width=128,
            experts=128,
            active_experts=8,
            source="Yang et al.: Qwen3 Technical Report, 2025, and the published configuration",
        ),
        Transformer(
            name="qwen3-235b-a22b",
            layers=94,
            hidden=4096,
            heads=64,
            kv_heads=4,
            ffn=1536,
            vocabulary=151_936,
            head_width=128,
            experts=128,
            active_experts=8,
            source="Yang et al.: Qwen3 Technical Report, 2025, and the published configuration",
        ),
        Transformer(
            name="minimax-m2",
            layers=62,
            hidden=3072,
            heads=48,
            kv_heads=8,
            ffn=1536,
            vocabulary=200_064,
            head_width=128,
            experts=256,
            active_experts=8,
            source="MiniMaxAI/MiniMax-M2, the published configuration; M2.1 and M2.5 have the same",
        ),
    )
}
