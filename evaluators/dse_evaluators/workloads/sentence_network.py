"""Transformer that encodes sentences; its widths follow from its weight tensors."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor
from torch.nn import functional

from dse_evaluators.workloads.taps import Taps

HEAD = 32
BLOCKS = 6
_SMALLEST = 1e-12

Tensors = Mapping[str, Tensor]


def encode_pieces(
    tensors: Tensors,
    pieces: Tensor,  # (n, t, width), the embedding of each word piece
    taps: Taps,
) -> Tensor:
    """Return a unit vector per sentence, (n, width): the normalized mean over its word pieces.

    Heads and neurons are those whose weights are present. A block without query weights has no
    attention, one without an intermediate layer has no feed-forward part.

    Source:
        Devlin et al., BERT, 2019; Wang et al., MiniLM, 2020; Reimers, Gurevych, Sentence-BERT,
        2019, section 3 (mean pooling).
    """
    length = pieces.shape[1]
    places = tensors["embeddings.position_embeddings.weight"][:length]
    stream = pieces + places + tensors["embeddings.token_type_embeddings.weight"][0]
    stream = _normalize(tensors, "embeddings", stream)
    for block in range(BLOCKS):
        name = f"encoder.layer.{block}"
        if f"{name}.attention.self.query.weight" in tensors:
            added = _attention(tensors, f"{name}.attention", stream, taps)
            stream = _normalize(tensors, f"{name}.attention.output", stream + added)
        if f"{name}.intermediate.dense.weight" in tensors:
            added = _ffn(tensors, name, stream, taps)
            stream = _normalize(tensors, f"{name}.output", stream + added)
    return functional.normalize(stream.mean(1), dim=-1)


def _attention(tensors: Tensors, name: str, stream: Tensor, taps: Taps) -> Tensor:
    """Compute multi-head attention over all word pieces of each sentence."""
    queries, keys, values = (
        _heads(_linear(tensors, f"{name}.self.{role}", stream, taps))
        for role in ("query", "key", "value")
    )
    found = functional.scaled_dot_product_attention(queries, taps.cached(keys), taps.cached(values))
    return _linear(tensors, f"{name}.output.dense", found.transpose(1, 2).flatten(2), taps)


def _heads(
    signal: Tensor,  # (n, t, heads * HEAD)
) -> Tensor:
    """Return the signal split into heads, (n, heads, t, HEAD)."""
    count, length, _ = signal.shape
    return signal.view(count, length, -1, HEAD).transpose(1, 2)


def _ffn(tensors: Tensors, name: str, stream: Tensor, taps: Taps) -> Tensor:
    """Compute the feed-forward output of each word piece."""
    inner = functional.gelu(_linear(tensors, f"{name}.intermediate.dense", stream, taps))
    return _linear(tensors, f"{name}.output.dense", inner, taps)


def _linear(tensors: Tensors, name: str, signal: Tensor, taps: Taps) -> Tensor:
    weight = f"{name}.weight"
    return functional.linear(taps.inputs(weight, signal), tensors[weight], tensors[f"{name}.bias"])


def _normalize(tensors: Tensors, name: str, stream: Tensor) -> Tensor:
    gain, shift = tensors[f"{name}.LayerNorm.weight"], tensors[f"{name}.LayerNorm.bias"]
    return functional.layer_norm(stream, stream.shape[-1:], gain, shift, _SMALLEST)
