"""Parameters of a language model, and the bytes that a sequence keeps in memory."""

from __future__ import annotations

from dataclasses import dataclass

from dse_evaluators.workloads.transformer_configs import Transformer, layer_kinds

STATE_BYTES, CONVOLUTION_BYTES = 4, 2
"""Bytes of an element of a recurrent state, in fp32 (``mamba_ssm_dtype`` of Qwen3.5), and of the
last inputs of the convolution in front of it, in 16 bits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ParameterCount:
    """Number of parameters of a language model, by purpose.

    ``layers`` are those of all layers with all experts, ``idle`` the experts that one token does
    not use. ``mtp`` are the layers for multi-token prediction, without the embedding and the LM
    head that they share with the model; ``total`` and ``active`` leave them out.
    """

    layers: int
    idle: int
    embedding: int
    head: int
    mtp: int

    @property
    def total(self) -> int:
        """All parameters without those for multi-token prediction."""
        return self.layers + self.embedding + self.head

    @property
    def active(self) -> int:
        """Parameters that one token uses, with the embedding and the LM head."""
        return self.total - self.idle


def count_parameters(model: Transformer) -> ParameterCount:
    """Return the number of parameters of a language model, exactly.

    Encoders and learnt positions count as in
    :func:`~dse_evaluators.workloads.transformer.transformer`.
    """
    kinds = layer_kinds(model)
    norm = model.hidden * (2 if model.biased else 1)
    edges = norm * (model.final_norm + model.embedding_norm)
    places = (model.positions + model.segments) * model.hidden
    pooler = 0 if model.causal else model.hidden * (model.hidden + 1)
    last = _layer(kinds[-1])
    words = model.vocabulary * model.hidden
    return ParameterCount(
        layers=sum(kind.layers * _layer(kind) for kind in kinds) + edges + places + pooler,
        idle=sum(kind.layers * _idle(kind) for kind in kinds),
        embedding=words,
        head=words if model.causal and not model.tied else 0,
        mtp=model.mtp_layers * (last + 2 * model.hidden**2 + 3 * norm),
    )


def mixer_weights(model: Transformer) -> tuple[int, int]:
    """Return the matrix weights of one layer's attention or state: sharded, and replicated.

    Tensor parallelism shards the weights of heads; the projections to and from the latents of
    latent attention that all heads share are replicated on every device, as is an indexer: its
    queries, its key and the weights of its heads.

    Args:
        model: a model of equal layers, as :func:`layer_kinds` returns them.
    """
    hidden = model.hidden
    if model.state:
        return hidden * (_projected(model) + model.state_heads * model.state_width), 0
    out = model.heads * model.value * hidden
    if model.kv_latent:
        upward = model.kv_latent * model.heads * (model.head - model.rotary_width + model.value)
        queries = model.heads * model.head * (model.query_latent or hidden)
        shared = hidden * (model.query_latent + model.kv_latent + model.rotary_width)
        index = model.query_latent * model.index_heads * model.index_width
        index += hidden * (model.index_width + model.index_heads)
        return queries + upward + out, shared + index
    gate = model.heads * model.head if model.gated_attention else 0
    return hidden * (model.together + gate) + out, 0


def feed_weights(model: Transformer) -> tuple[int, int]:
    """Return the matrix weights of one expert, and of the shared experts, of one layer.

    A layer without experts counts as one expert: its feed-forward network.
    """
    matrices = (3 if model.gated else 2) * model.hidden
    return matrices * model.ffn, matrices * model.shared_ffn


def cached_elements(model: Transformer) -> int:
    """Return the elements of a layer's KV cache that one token adds, over all heads.

    Source:
        Ainslie et al.: GQA, 2023; DeepSeek-AI: DeepSeek-V2, 2024, table 1 (latent attention).
    """
    if model.state:
        return 0
    if model.kv_latent:
        return model.kv_latent + model.rotary_width
    return model.kv_heads * (model.head + model.value)


def index_bytes(model: Transformer) -> float:
    """Return the bytes of the indexer's key of one token in one layer; 0 without an indexer.

    The key is in 8 bits, with a scale in fp32.

    Source:
        deepseek-ai/DeepSeek-V3.2-Exp: inference/model.py (class Indexer).
    """
    return model.index_width + 4.0 if model.index_tokens else 0.0


def state_bytes(model: Transformer) -> int:
    """Return the bytes of one layer's recurrent state of one sequence; 0 for attention.

    Source:
        Dao, Gu: Transformers are SSMs, 2024, section 7 (a state of P x N per head); Yang et al.:
        Gated Delta Networks, 2024, equation 10.
    """
    if not model.state:
        return 0
    state = model.state_heads * model.state_key * model.state_width
    return STATE_BYTES * state + CONVOLUTION_BYTES * (model.convolution - 1) * channels(model)


def sequence_bytes(model: Transformer, tokens: int, cache_bytes: float = 2.0) -> float:
    """Return the bytes of the KV cache and the states of one sequence, over all layers.

    Args:
        model: the model.
        tokens: tokens of the sequence.
        cache_bytes: bytes of a cached element.
    """
    return sum(
        kind.layers
        * (
            (cached_elements(kind) * cache_bytes + index_bytes(kind))
            * min(tokens, kind.window or tokens)
            + state_bytes(kind)
        )
        for kind in layer_kinds(model)
    )


def channels(model: Transformer) -> int:
    """Return the number of channels of the convolution before a layer's recurrent state."""
    return 2 * model.state_groups * model.state_key + model.state_heads * model.state_width


def _projected(model: Transformer) -> int:
    """Return the width of the input projection of a layer with a state.

    Besides the channels of the convolution these are the gate of the output and, per head, the step
    size (Mamba-2), or the decay and the write strength (gated DeltaNet).
    """
    per_head = 1 if model.state == "mamba2" else 2
    gate = model.state_heads * model.state_width
    return channels(model) + gate + per_head * model.state_heads


def _layer(model: Transformer) -> int:
    sharded, replicated = mixer_weights(model)
    expert, shared = feed_weights(model)
    norms = model.norms if model.ffn or model.norms != 2 else 1
    total = sharded + replicated + model.experts * expert + shared + _router(model)
    total += norms * model.hidden * (2 if model.biased else 1)
    total += _state_vectors(model) if model.state else _attention_vectors(model)
    return total + _feed_biases(model)


def _router(model: Transformer) -> int:
    if model.experts <= 1:
        return 0
    offsets = model.experts * (model.router_offset + model.expert_biased)
    return model.hidden * model.experts + offsets + model.hidden * model.shared_gated


def _feed_biases(model: Transformer) -> int:
    each = model.ffn * (2 if model.gated else 1) + model.hidden
    return model.experts * each * (model.biased or model.expert_biased)


def _attention_vectors(model: Transformer) -> int:
    """Return the parameters of biases, of norms inside of the attention, and of sinks."""
    gate = model.heads * model.head * model.gated_attention
    biases = (model.together + gate) * (model.biased or model.qkv_biased)
    biases += model.hidden * (model.biased or model.out_biased)
    latents = (model.query_latent + model.kv_latent) * bool(model.kv_latent)
    latents += 2 * model.index_width  # layer norm of the indexer's key
    wide = {"head": 2 * model.head, "all": (model.heads + model.kv_heads) * model.head}
    return biases + latents + wide.get(model.query_norm, 0) + model.heads * model.sinks


def _state_vectors(model: Transformer) -> int:
    kernel = channels(model) * model.convolution
    if model.state == "mamba2":  # bias of the convolution; A, D and dt; norm of all heads
        inner = model.state_heads * model.state_width
        return kernel + channels(model) + 3 * model.state_heads + inner
    return kernel + 2 * model.state_heads + model.state_width


def _idle(model: Transformer) -> int:
    expert, _ = feed_weights(model)
    biases = _feed_biases(model) // model.experts
    return (model.experts - model.active_experts) * (expert + biases)
