"""Memory of a served model on each device, and the number of sequences that fit."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dse.core.values import Floats
from dse_evaluators.clusters.serving.experts import count_chosen_experts
from dse_evaluators.clusters.serving.share import WORD, ModelSharding
from dse_evaluators.workloads.parameter_count import feed_weights, mixer_weights, state_bytes
from dse_evaluators.workloads.transformer_configs import Transformer

CACHE_BYTES = {
    "fp32": 4.0,
    "bf16": 2.0,
    "fp16": 2.0,
    "fp8": 1.0,
    "fp8_e4m3": 1.0,
    "fp8_e5m2": 1.0,
    "int8": 1.0,
    "nvfp4": 0.5 + 1 / 16,
}
"""Bytes of a cached element by format; nvfp4 has a one-byte scale per 16 elements."""

_SCORE = 4.0
"""Bytes of a logit, in fp32."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingMemory:
    """Memory used on one device by kind of data, in bytes; every field is (n,)."""

    weights: Floats
    cache: Floats
    draft: Floats
    """Weights and KV cache of the draft model."""
    workspace: Floats

    @property
    def total(self) -> Floats:
        return self.weights + self.cache + self.draft + self.workspace


def weight_bytes(
    share: ModelSharding, operand_bytes: Floats, expert_bytes: Floats | None = None
) -> Floats:
    """Return the bytes of weights on one device, (n,).

    Layers are in their own format, and the projections into latents that all heads share are on
    every device; redundant experts count as further experts; embedding, LM head and routers are in
    16 bits. The first pipeline stage holds the embedding, the last the LM head; the fullest stage
    counts.

    Args:
        share: the sharding of a model copy.
        operand_bytes: bytes of a weight, (n,).
        expert_bytes: bytes of a weight of routed experts, (n,), if these differ.
    """
    layers = copies = np.zeros_like(operand_bytes)
    routers: Floats | float = 0.0
    for kind in share.kinds:
        model = kind.model
        sharded, copied = mixer_weights(model)
        expert, shared = feed_weights(model)
        each = expert_bytes if expert_bytes is not None and model.experts > 1 else operand_bytes
        fed = each * (model.experts + kind.redundant) * expert / kind.groups
        held = share.kind_layers(model, share.stage_layers)
        layers = layers + ((sharded + shared) * operand_bytes + fed) * held
        copies = copies + copied * held * operand_bytes
        routers = routers + WORD * _router_weights(model) * held
    vocabulary = WORD * _vocabulary_weights(share.model, share.stages)
    return (layers + vocabulary) / share.devices + copies + routers


def text_bytes(share: ModelSharding, tokens: float) -> Floats:
    """Return the bytes of the KV cache of one sequence with ``tokens`` tokens on one device, (n,).

    Layers with a window keep no more tokens than it has, and layers with a state keep that state.

    Source:
        Kwon et al.: Efficient Memory Management for Large Language Model Serving with
        PagedAttention, 2023, section 1; pages are assumed full.
    """
    stage = share.stage_layers
    first, *others = [
        _kept_bytes(kind, tokens, share.kind_layers(kind.model, stage)) for kind in share.kinds
    ]
    return sum(others, first)


def growing_bytes(share: ModelSharding) -> Floats:
    """Return the bytes that each additional token of a sequence adds on one device, (n,).

    Layers with a window or a state do not grow; :func:`bounded_bytes` returns their bytes.
    """
    kinds = [kind for kind in share.kinds if not _is_bounded(kind.model)]
    grown = [_kept_bytes(kind, 1.0, float(kind.model.layers)) for kind in kinds]
    return sum(grown, np.zeros_like(share.devices))


def bounded_bytes(share: ModelSharding, tokens: float) -> Floats:
    """Return the bytes of windows and states of a sequence of ``tokens`` on one device, (n,)."""
    kinds = [kind for kind in share.kinds if _is_bounded(kind.model)]
    kept = [_kept_bytes(kind, tokens, float(kind.model.layers)) for kind in kinds]
    return sum(kept, np.zeros_like(share.devices))


def _is_bounded(model: Transformer) -> bool:
    return bool(model.window or model.state)


def _kept_bytes(share: ModelSharding, tokens: float, layers: Floats | float) -> Floats:
    """Return the bytes that ``layers`` layers of a kind keep of a sequence on one device, (n,)."""
    model = share.model
    kept = min(tokens, model.window) if model.window else tokens
    found = layers * kept * share.token_bytes
    if model.state:
        found = found + layers * state_bytes(model) / share.devices
    return found


def workspace_bytes(share: ModelSharding, most_tokens: Floats, scored: Floats) -> Floats:
    """Return the bytes of the widest layer's activations and of the logits on a device, (n,).

    Args:
        share: the sharding of a model copy.
        most_tokens: tokens of the largest step, (n,).
        scored: tokens of that step with logits, (n,).
    """
    widest = np.max([_widest(kind) * np.ones_like(most_tokens) for kind in share.kinds], axis=0)
    logits = _SCORE * scored * share.model.vocabulary / share.devices
    return WORD * (most_tokens * widest) + logits


def _widest(share: ModelSharding) -> Floats:
    """Return the elements per token of a layer's residuals and widest activations, (n,)."""
    model = share.model
    rows = share.busiest * share.groups * count_chosen_experts(model) / share.expert_groups
    inside = (2.0 if model.gated else 1.0) * model.ffn / share.expert_devices
    inner = inside + model.ffn / share.expert_devices
    return 2.0 * model.hidden + rows * inner


def roomy(room: Floats, each: Floats) -> Floats:
    """Return how many sequences of ``each`` bytes fit into ``room`` free bytes, (n,)."""
    return np.floor(np.maximum(room, 0.0) / each)


def _vocabulary_weights(model: Transformer, stages: Floats | float) -> Floats:
    tables = np.where(np.asarray(stages) > 1, 1.0, 1.0 if model.tied else 2.0)
    return tables * model.vocabulary * model.hidden


def _router_weights(model: Transformer) -> float:
    return float(model.hidden * model.experts) if model.experts > 1 else 0.0
