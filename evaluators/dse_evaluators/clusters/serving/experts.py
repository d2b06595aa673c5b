"""Cost of a layer's feed-forward part, dense or mixture of experts, on the devices of a copy."""

from __future__ import annotations

import numpy as np

from dse.core.values import Floats
from dse_evaluators.accelerators.devices.roofline import KernelWork
from dse_evaluators.clusters.serving.engine import Engine
from dse_evaluators.clusters.serving.expert_popularity import busiest_of_groups
from dse_evaluators.clusters.serving.fabric import ServingFabric
from dse_evaluators.clusters.serving.mixers import StepTokens
from dse_evaluators.clusters.serving.share import WORD, ModelSharding
from dse_evaluators.workloads.transformer_configs import Transformer

_ROUTING_KERNELS = 4.0
"""Routing kernels of a layer with experts: gating scores, top-k, permute and unpermute."""

_SCORE = 4.0
"""Bytes of the gating score of one expert, in fp32."""


def count_chosen_experts(model: Transformer) -> float:
    """Return the number of experts that process one token; 1 for a dense model."""
    return float(model.active_experts) if model.experts > 1 else 1.0


def count_touched_experts(model: Transformer, tokens: Floats) -> Floats:
    """Return the mean number of distinct experts that T tokens select in a layer, (n,).

    It is ``E (1 - (1 - k / E)^T)``: every token selects k of E experts, uniformly and independently
    of the other tokens.

    Source:
        Feller: An Introduction to Probability Theory and Its Applications, 1950, IV.2 (the
        occupancy problem).
    """
    if model.experts <= 1:
        return np.ones_like(tokens)
    share = model.active_experts / model.experts
    return model.experts * (1.0 - np.power(1.0 - share, tokens))


def _count_read_experts(share: ModelSharding, tokens: Floats) -> Floats:
    """Return the experts that the busiest group reads, times the number of groups, (n,)."""
    if share.model.experts <= 1 or share.popularity == 0:
        return share.busiest * count_touched_experts(share.model, tokens)
    read = 1.0 - np.power(1.0 - share.chances, tokens[..., None])  # (n, E)
    busiest = np.maximum(share.imbalance, busiest_of_groups(read, share.expert_groups))
    return np.asarray(np.minimum(busiest, share.expert_groups) * read.sum(axis=-1))


def engine_of(model: Transformer, engine: Engine) -> Engine:
    """Return the roofline model of a layer's routed or dense feed-forward GEMMs."""
    return engine.routed if model.experts > 1 else engine


def products(share: ModelSharding, tokens: Floats, engine: Engine) -> tuple[KernelWork, ...]:
    """Return the up- and down-projection GEMMs of a feed-forward network or routed experts.

    A layer without a feed-forward network has no GEMMs.

    The weights of every selected expert are read. Each group of devices holds some of the experts,
    and each device of a group a share of their width. The devices of the busiest group receive
    ``busiest`` times the mean number of tokens, whose experts are as many times more, at most all
    of the group. A grouped GEMM is assumed as fast as one GEMM of the total size, since no
    measurement of grouped GEMMs is used.

    Args:
        share: the sharding of a model copy.
        tokens: tokens of one attention group, (n,).
        engine: roofline model of these GEMMs, by :func:`engine_of`.
    """
    model = share.model
    if not model.ffn:
        return ()
    everyone = tokens * share.groups
    rows = share.busiest * everyone * count_chosen_experts(model) / share.expert_groups
    held = model.experts + share.redundant
    touched = np.minimum(_count_read_experts(share, everyone), held)
    copies = touched / share.expert_groups
    hidden = np.full_like(rows, model.hidden)
    inner = model.ffn / share.expert_devices
    wide = (2.0 if model.gated else 1.0) * inner
    return (
        engine.product(rows, hidden, wide, copies=copies),
        engine.product(rows, inner, hidden, copies=copies),
    )


def shared_products(share: ModelSharding, tokens: Floats, engine: Engine) -> tuple[KernelWork, ...]:
    """Return the GEMMs of the shared experts, which process all tokens of their own group.

    The GEMMs are sharded like those of a dense feed-forward network.
    """
    model = share.model
    if not model.shared_ffn:
        return ()
    hidden = np.full_like(tokens, model.hidden)
    inner = model.shared_ffn / share.devices
    return (
        engine.product(tokens, hidden, (2.0 if model.gated else 1.0) * inner),
        engine.product(tokens, inner, hidden),
    )


def activation_bytes(share: ModelSharding, engine: Engine) -> Floats:
    """Return the bytes that the activation function moves per token on one device."""
    model = share.model
    rows = share.busiest * share.groups * count_chosen_experts(model) / share.expert_groups
    gates = 2.0 if model.gated else 1.0
    width = gates * WORD + engine_of(model, engine).operand_bytes
    each = rows * (width * model.ffn / share.expert_devices)
    if not model.shared_ffn:
        return each
    return each + (gates * WORD + engine.operand_bytes) * model.shared_ffn / share.devices


def routing(share: ModelSharding, tokens: Floats, engine: Engine) -> tuple[Floats, Floats]:
    """Return the seconds and the moved bytes of a layer's expert routing, (n,) each."""
    model = share.model
    if model.experts <= 1:
        nothing = np.zeros_like(tokens)
        return nothing, nothing
    scores = tokens * model.experts
    sent = share.busiest * tokens * share.groups * count_chosen_experts(model) / share.expert_groups
    weights = float(model.hidden * model.experts)
    moved = (
        WORD * (tokens * model.hidden + weights)
        + 2.0 * _SCORE * scores
        + 2.0 * (engine.routed.operand_bytes + WORD) * sent * model.hidden
    )
    return _ROUTING_KERNELS * engine.plain.launch_s + engine.passes_s(moved), moved


def exchange_s(
    share: ModelSharding,
    tokens: StepTokens,
    engine: Engine,
    fabric: ServingFabric,
    summed_s: Floats,
) -> Floats:
    """Return the seconds of communication around a layer's feed-forward network, (n,).

    If one group of devices computes the attention, all devices hold all tokens, and one all-reduce
    is enough. With several groups, each device sends its share of its group's tokens to the devices
    of the selected experts (at most one copy per device), receives the results, and gathers them
    within its group. The busiest group receives ``busiest`` times the mean of tokens. Between nodes
    the copies of decode tokens go directly to their devices; a step with prefill sends each token
    at most once to a node, where it is forwarded.

    Args:
        share: the sharding of a model copy.
        tokens: tokens of one attention group.
        engine: roofline model, with the bytes of a sent element; results return in 16 bits.
        fabric: links between the devices.
        summed_s: seconds of an all-reduce over a group's tokens, (n,).

    Source:
        DeepSeek-AI: DeepSeek-V3, 2024, sections 3.2.2 and 3.4 (forwarding within a node in prefill,
        direct messages in decode); Zhao et al.: DeepEP, 2025 (kernels of both kinds).
    """
    if np.all(share.groups == 1):
        return summed_s
    everyone = share.devices * share.groups
    chosen = count_chosen_experts(share.model)
    copies = np.minimum(chosen * share.expert_devices, everyone)
    own = share.busiest * tokens.all / share.devices * share.model.hidden
    nodes = fabric.count_nodes(everyone)
    apart = np.minimum(share.expert_groups, nodes)  # groups of nodes that hold different experts
    reached = (nodes - 1.0) * (1.0 - np.power(1.0 - 1.0 / apart, chosen))
    direct = copies * (nodes - 1.0) / nodes
    forwarded = (tokens.prompt > 0) & (reached < direct)
    crossing = np.where(forwarded, reached, direct)
    sent_s, back_s = (
        fabric.exchange_s(
            width * own * copies, everyone, crossing=width * own * crossing, forwarded=forwarded
        )
        for width in (engine.routed.operand_bytes, WORD)
    )
    return np.where(share.groups == 1, summed_s, sent_s + back_s + summed_s / 2.0)
