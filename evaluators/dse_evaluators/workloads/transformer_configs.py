"""Published sizes of transformers, by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from dse_evaluators.csv_files.csv_records import read_records

STATE_KINDS = ("mamba2", "gated-delta")
"""Layers with a recurrent state instead of a KV cache: state-space (Mamba-2) and gated DeltaNet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Transformer:
    """Sizes of a transformer language model; the defaults are those of a Llama.

    ``positions`` is the number of learnt position embeddings; 0 means rotary embeddings, for which
    a sequence may have any length. If ``biased``, layers and norms have biases. A ``causal`` model
    predicts the next token with an LM head that may be ``tied`` to the embedding; other models have
    a dense layer on the first token. If ``head_width`` is 0, the query heads together are as wide
    as ``hidden``. A layer with several ``experts``, each ``ffn`` wide, routes every token to
    ``active_experts`` of them.

    Layers may differ. The first ``dense_layers`` of a model with experts have one feed-forward
    network of width ``dense_ffn``; ``window_layers`` attend to the last ``window`` tokens, and
    ``state_layers`` have a recurrent state of kind ``state`` instead of attention. ``ffn`` of 0
    means layers without a feed-forward network. :func:`layer_kinds` returns the kinds of layers.
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
    value_width: int = 0
    """Width of a value head; 0: that of a query head."""
    query_latent: int = 0
    """Width of the compressed queries of latent attention; 0: queries are not compressed."""
    kv_latent: int = 0
    """Width of the compressed keys and values of latent attention; 0: no latent attention."""
    rotary_width: int = 0
    """Part of a query head with rotary embedding, whose key all heads share (latent attention)."""
    index_heads: int = 0
    """Heads of the indexer, which chooses the tokens that a query attends to (sparse attention)."""
    index_width: int = 0
    """Width of a head of the indexer, and of the key that it keeps of each token."""
    index_tokens: int = 0
    """Tokens that a query attends to; 0: all."""
    window: int = 0
    window_layers: int = 0
    sinks: bool = False
    """Whether each query head has a learnt sink in its softmax."""
    gated_attention: bool = False
    """Whether the query projection also yields a gate of the attention's output."""
    qkv_biased: bool = False
    out_biased: bool = False
    query_norm: str = ""
    """Norm of queries and keys: ``head`` (one vector for all heads), ``all`` heads at once."""
    norms: int = 2
    """Norms of a layer, besides those of queries and keys."""
    expert_biased: bool = False
    """Whether router and experts have biases."""
    router_offset: bool = False
    """Whether the router has a learnt offset per expert that balances the load."""
    shared_ffn: int = 0
    """Width of the shared experts together, which process every token; 0: there are none."""
    shared_gated: bool = False
    """Whether a learnt gate weights the output of the shared experts."""
    dense_layers: int = 0
    dense_ffn: int = 0
    state: str = ""
    state_layers: int = 0
    state_heads: int = 0
    state_groups: int = 0
    """Key heads of a layer with a state; Mamba-2: groups that share their B and C."""
    state_key: int = 0
    """Width of a key of the state; Mamba-2: the state size N."""
    state_width: int = 0
    """Width of a value of the state; Mamba-2: the head width P."""
    convolution: int = 0
    """Tokens of the short convolution in front of a state."""
    mtp_layers: int = 0
    """Layers that predict further tokens (multi-token prediction), not part of ``layers``."""

    @property
    def head(self) -> int:
        """Width of one attention head."""
        return self.head_width or self.hidden // self.heads

    @property
    def value(self) -> int:
        """Width of one value head."""
        return self.value_width or self.head

    @property
    def together(self) -> int:
        """Total width of the queries, keys and values of one token."""
        return self.heads * self.head + self.kv_heads * (self.head + self.value)

    @property
    def is_plain(self) -> bool:
        """Whether all layers are equal, with full attention and no shared experts."""
        return not (
            self.kv_latent
            or self.window_layers
            or self.state_layers
            or self.dense_layers
            or self.shared_ffn
            or self.value_width
            or self.gated_attention
        )


TRANSFORMERS: Mapping[str, Transformer] = read_records(
    Path(__file__).with_name("transformers.csv"), Transformer
)
"""Rows of ``transformers.csv``, by name."""

PLAIN_TRANSFORMERS: Mapping[str, Transformer] = {
    name: model for name, model in TRANSFORMERS.items() if model.is_plain
}
"""Transformers of :data:`TRANSFORMERS` whose layers are all equal, with full attention."""


@cache
def layer_kinds(model: Transformer) -> tuple[Transformer, ...]:
    """Return the kinds of layers of a model, each as a model of ``layers`` equal layers.

    The cost of a layer is the sum of its attention and its feed-forward network, so that the kinds
    do not depend on which of the two occur together. In each kind ``window_layers`` and
    ``state_layers`` are 0 or ``layers``, and ``dense_layers`` is 0.
    """
    if model.is_plain:
        return (model,)
    full = model.layers - model.window_layers - model.state_layers
    mixers = _ends((("full", full), ("window", model.window_layers), ("state", model.state_layers)))
    feeds = _ends((("dense", model.dense_layers), ("routed", model.layers - model.dense_layers)))
    ends = sorted({end for end, _ in (*mixers, *feeds)})
    found, before = [], 0
    for end in ends:
        mixer = next(kind for last, kind in mixers if last >= end)
        feed = next(kind for last, kind in feeds if last >= end)
        found.append(_kind(model, end - before, mixer, feed))
        before = end
    return tuple(found)


def _ends(parts: tuple[tuple[str, int], ...]) -> list[tuple[int, str]]:
    """Return the index behind the last layer of each kind that occurs, with its name."""
    found, last = [], 0
    for kind, count in parts:
        last += count
        if count:
            found.append((last, kind))
    return found


def _kind(model: Transformer, layers: int, mixer: str, feed: str) -> Transformer:
    kind = replace(
        model,
        layers=layers,
        window_layers=layers if mixer == "window" else 0,
        window=model.window if mixer == "window" else 0,
        state_layers=layers if mixer == "state" else 0,
        state=model.state if mixer == "state" else "",
        dense_layers=0,
        mtp_layers=0,
    )
    if feed != "dense":
        return kind
    return replace(kind, ffn=model.dense_ffn, experts=1, active_experts=1, shared_ffn=0)
