"""Cost of a layer's attention or recurrent state on one device of a served model."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dse.core.values import Floats
from dse_evaluators.accelerators.devices.roofline import KernelWork
from dse_evaluators.clusters.serving.engine import Engine
from dse_evaluators.clusters.serving.share import WORD, ModelSharding
from dse_evaluators.workloads.parameter_count import (
    channels,
    index_bytes,
    mixer_weights,
    state_bytes,
)
from dse_evaluators.workloads.transformer_configs import Transformer

_CHUNK = 64.0
"""Tokens that a prefill kernel of a layer with a state processes at once (flash-linear-attention's
default; Mamba-2's kernels use 128 to 256)."""

_SCORE = 4.0
"""Bytes of the indexer's score of a token, in fp32."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepTokens:
    """Work of one inference step: sequences, queries and prompt tokens; every field is (n,)."""

    sequences: Floats
    """Sequences in decode, each with ``context`` tokens in the KV cache."""
    queries: Floats
    """New tokens per sequence in decode; more than one where draft tokens are verified."""
    context: Floats
    prompt: Floats
    """Prefill tokens in this step."""
    length: Floats
    """Tokens of the complete prompt."""
    waves: Floats | float = 1.0
    """Steps in flight at once, each in a different pipeline stage."""

    @property
    def written(self) -> Floats:
        return self.sequences * self.queries

    @property
    def all(self) -> Floats:
        return self.written + self.prompt


def projections(share: ModelSharding, tokens: Floats, engine: Engine) -> tuple[KernelWork, ...]:
    """Return the weight GEMMs of a layer's attention or recurrent state, on one device.

    In latent attention the projections into the latents are replicated on all devices. Expanding
    keys and values from the latent in prefill, and absorbing that projection into queries and
    outputs in decode, multiply the same weights with the same number of rows. An indexer (of sparse
    attention) is replicated, too: its queries are computed from the latent of the queries; its key
    and the weights of its heads join the projection into the latents.

    Source:
        DeepSeek-AI: DeepSeek-V2, 2024, section 2.1.2 and appendix C; DeepSeek-V3.2, 2025,
        section 2.1 (indexer); Dao, Gu: Transformers are
        SSMs, 2024, section 7 (Mamba-2 block); Yang et al.: Gated Delta Networks, 2024, section 3.3.
    """
    model, devices = share.model, share.devices
    hidden = np.full_like(tokens, model.hidden)
    out = engine.product(tokens, values_width(share), hidden)
    if model.state:
        sharded, _ = mixer_weights(model)
        together = (sharded / model.hidden - model.state_heads * model.state_width) / devices
        return engine.product(tokens, hidden, together), out
    heads = model.heads * model.head / devices
    if not model.kv_latent:
        gate = heads if model.gated_attention else 0.0
        together = heads + gate + share.kv_heads * (model.head + model.value)
        return engine.product(tokens, hidden, together), out
    inner = model.heads * (model.head - model.rotary_width + model.value) / devices
    latent = float(model.query_latent + model.kv_latent + model.rotary_width)
    queries = np.full_like(tokens, model.query_latent or model.hidden)
    index: tuple[KernelWork, ...] = ()
    if model.index_tokens:
        latent += model.index_width + model.index_heads
        wide = np.full_like(tokens, model.index_heads * model.index_width)
        index = (engine.product(tokens, queries, wide),)
    return (
        *index,
        engine.product(tokens, hidden, np.full_like(tokens, latent)),
        engine.product(tokens, queries, heads),
        engine.product(tokens, np.full_like(tokens, model.kv_latent), inner),
        out,
    )


def values_width(share: ModelSharding) -> Floats:
    """Return the width of one token's attention (or state) output on one device, (n,)."""
    model = share.model
    if model.state:
        return model.state_heads * model.state_width / share.devices
    return model.heads * model.value / share.devices


def moved_width(share: ModelSharding) -> Floats:
    """Return the elements per token of queries, keys and values on one device, (n,)."""
    model = share.model
    if model.state:
        return channels(model) / share.devices
    heads = model.heads * model.head / share.devices
    if model.kv_latent:
        return heads + float(model.query_latent + model.kv_latent + model.rotary_width)
    return heads + share.kv_heads * (model.head + model.value)


def decode_work(share: ModelSharding, tokens: StepTokens) -> KernelWork:
    """Return the operations and bytes of attention (or recurrent states) in a decode step.

    A sliding window limits the context, and so does an indexer, which scores the complete context.
    Latent attention multiplies every query head with the cached latents, which it reads once. A
    state is read and written once per sequence and step.

    Source:
        DeepSeek-AI: DeepSeek-V2, 2024, appendix C; Jiang et al.: Mistral 7B, 2023, section 2
        (window); Dao, Gu: Transformers are SSMs, 2024, equation 1; DeepSeek-AI: DeepSeek-V3.2,
        2025, equation 1 (indexer).
    """
    model = share.model
    if model.state:
        return _work(
            flops=tokens.written * _state_flops(model) / share.devices,
            moved_bytes=tokens.sequences * 2.0 * state_bytes(model) / share.devices
            + WORD * tokens.written * (channels(model) / share.devices + values_width(share)),
        )
    if model.kv_latent:
        widths = 2.0 * model.kv_latent + model.rotary_width
    else:
        widths = float(model.head + model.value)
    wide = model.heads * widths / share.devices
    context, index = tokens.context, _Index(model)
    if model.window or model.index_tokens:
        context = np.minimum(context, model.window or model.index_tokens)
    return _work(
        flops=2.0 * tokens.written * context * wide + index.flops(tokens.written, tokens.context),
        moved_bytes=tokens.sequences * context * share.attended_bytes
        + WORD * tokens.written * wide
        + index.moved_bytes(tokens.sequences * tokens.context, tokens.written * tokens.context),
    )


def prompt_work(share: ModelSharding, tokens: StepTokens) -> KernelWork:
    """Return the operations and bytes of attention (or recurrent states) for a prefill chunk.

    The results are averages over the chunks of a prompt. A token attends to half of the prompt on
    average, or to its window; a chunk reads the KV cache of its prefix. Latent attention multiplies
    the expanded keys and values; with an indexer, prompts above ``index_tokens`` multiply the
    latents, as in decode. A state is carried from one block of tokens to the next.

    Source:
        Dao, Gu: Transformers are SSMs, 2024, section 6 (blocks of a state-space layer);
        DeepSeek-AI: DeepSeek-V3.2, 2025, section 2.1 (latents in sparse prefill).
    """
    model = share.model
    if model.state:
        return _state_prompt(share, tokens)
    wide = model.heads * (model.head + model.value) / share.devices
    length, seen, index = tokens.length, tokens.length / 2.0, _Index(model)
    before = (length + tokens.prompt) / 2.0
    most = model.window or model.index_tokens
    if most:
        near = np.minimum(length, most)
        seen = near - near * near / (2.0 * length)
    if model.window:
        before = np.minimum(before, model.window + tokens.prompt)
    if model.index_tokens:
        absorbed = model.heads * (2.0 * model.kv_latent + model.rotary_width) / share.devices
        wide = np.where(length > model.index_tokens, absorbed, wide)
    before = np.where(tokens.prompt > 0, before, 0.0)
    return _work(
        flops=2.0 * tokens.prompt * seen * wide + index.flops(tokens.prompt, length / 2.0),
        moved_bytes=before * share.attended_bytes
        + WORD * tokens.prompt * wide
        + index.moved_bytes(before, tokens.prompt * length / 2.0),
    )


@dataclass(frozen=True, slots=True)
class _Index:
    """Cost of the indexer of a layer with sparse attention, which every device runs in full.

    Its products count at the rate of the attention's, although they are in 8 bits.
    """

    model: Transformer

    def flops(self, queries: Floats, context: Floats) -> Floats:
        """Return the operations of scoring ``context`` tokens for each of ``queries``, (n,)."""
        return 2.0 * queries * context * self.model.index_heads * self.model.index_width

    def moved_bytes(self, keys: Floats, scores: Floats) -> Floats:
        """Return the bytes of the keys that are read, and of scores written and read, (n,)."""
        if not self.model.index_tokens:
            return np.zeros_like(keys)
        return keys * index_bytes(self.model) + 2.0 * _SCORE * scores


def _state_flops(model: Transformer) -> float:
    """Return the operations of updating and reading a layer's state for one token.

    Mamba-2 decays the state, adds an outer product and reads it; the delta rule reads the state
    once more, for the value to replace.
    """
    products = 5.0 if model.state == "mamba2" else 7.0
    return products * model.state_heads * model.state_key * model.state_width


def _state_prompt(share: ModelSharding, tokens: StepTokens) -> KernelWork:
    """Return the work of a prefill chunk: products within blocks of tokens, and their states.

    The delta rule also inverts a triangular matrix per block and applies it to keys and values.

    Source:
        Dao, Gu: Transformers are SSMs, 2024, section 6; Yang et al.: Parallelizing Linear
        Transformers with the Delta Rule over Sequence Length, 2024, section 3.2.
    """
    model = share.model
    key, value = model.state_key, model.state_width
    each = 2.0 * _CHUNK * (key + value) + 4.0 * key * value
    if model.state != "mamba2":
        each += 2.0 * _CHUNK * (2.0 * key + value) + 2.0 * key * value
    wide = channels(model) / share.devices + values_width(share)
    blocks = tokens.prompt / _CHUNK
    return _work(
        flops=tokens.prompt * model.state_heads * each / share.devices,
        moved_bytes=WORD * tokens.prompt * wide + 2.0 * blocks * state_bytes(model) / share.devices,
    )


def _work(flops: Floats, moved_bytes: Floats) -> KernelWork:
    nothing = np.zeros_like(flops)
    return KernelWork(flops=flops, moved_bytes=moved_bytes, chain=nothing, converted=nothing)
