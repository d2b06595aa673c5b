"""Memory of a served model on each device, and the number of sequences that fit."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dse.core.values import Floats
from dse_evaluators.clusters.serving.experts import count_chosen_experts
from dse_evaluators.clusters.serving.share import WORD, ModelSharding
from dse_evaluators.workloads.transformer_configs import Transformer

CACHE_BYTES = {
    "fp32": 4.0,
    "bf16": 2.0,
    "fp16": 2.0,
    "fp8": 1.0,
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


def weight_bytes(share: ModelSharding, operand_bytes: Floats) -> Floats:
    """Return the bytes of weights on one device, (n,).

    Layers are in their own format; embedding, LM head and routers are in 16 bits. The first
    pipeline stage holds the embedding, the last the LM head.
    """
    model = share.model
    wide = (3.0 if model.gated else 2.0) * model.hidden * model.ffn
    narrow = float(model.hidden * (model.together + model.heads * model.head))
    block = narrow + model.experts * wide / share.groups
    layers = block * model.layers * operand_bytes / share.stages
    routers = WORD * _router_weights(model) / share.stages
    vocabulary = WORD * _vocabulary_weights(model, share.stages)
    return (layers + vocabulary) / share.devices + routers


def text_bytes(share: ModelSharding, tokens: float) -> Floats:
    """Return the bytes of the KV cache of one sequence with ``tokens`` tokens on one device, (n,).

    Source:
        Kwon et al.: Efficient Memory Management for Large Language Model Serving with
        PagedAttention, 2023, section 1; pages are assumed full.
    """
    return share.model.layers * tokens * share.token_bytes / share.stages


def workspace_bytes(share: ModelSharding, most_tokens: Floats, scored: Floats) -> Floats:
    """Return the bytes of the widest layer's activations and of the logits on a device, (n,).

    Args:
        share: the sharding of a model copy.
        most_tokens: tokens of the largest step, (n,).
        scored: tokens of that step with logits, (n,).
    """
    model = share.model
    rows = share.groups * count_chosen_experts(model) / share.expert_groups
    inside = (2.0 if model.gated else 1.0) * model.ffn / share.expert_devices
    inner = inside + model.ffn / share.expert_devices
    widest = most_tokens * (2.0 * model.hidden + rows * inner)
    return WORD * widest + _SCORE * scored * model.vocabulary / share.devices


def roomy(room: Floats, each: Floats) -> Floats:
    """Return the number of sequences of ``each`` bytes that fit into ``room`` free bytes, (n,)."""
    return np.floor(np.maximum(room, 0.0) / each)


def _vocabulary_weights(model: Transformer, stages: Floats | float) -> Floats:
    tables = np.where(np.asarray(stages) > 1, 1.0, 1.0 if model.tied else 2.0)
    return tables * model.vocabulary * model.hidden


def _router_weights(model: Transformer) -> float:
    return float(model.layers * model.hidden * model.experts) if model.experts > 1 else 0.0
