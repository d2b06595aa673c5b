"""A layer's wide part on the devices of a copy: one for all tokens, or experts for some each."""

from __future__ import annotations

import numpy as np

from dse.core.values import Floats
from dse_evaluators.accelerators.devices.roofline import KernelWork
from dse_evaluators.clusters.serving.engine import Engine
from dse_evaluators.clusters.serving.fabric import ServingFabric
from dse_evaluators.clusters.serving.share import WORD, ModelSharding
from dse_evaluators.workloads.transformer_configs import Transformer

_ROUTING_KERNELS = 4.0
"""Of a layer with experts: the scores, the choice, tokens to their experts, and results back."""

_SCORE = 4.0
"""Bytes of the score of an expert, in fp32."""


def count_chosen_experts(model: Transformer) -> float:
    """Return the number of experts of one token; one where there is no choice."""
    return float(model.active_experts) if model.experts > 1 else 1.0


def count_touched_experts(model: Transformer, tokens: Floats) -> Floats:
    """Return the mean number of experts chosen, ``E (1 - (1 - k / E)^T)``, (n,).

    These are the experts that the tokens of a layer choose together.

    Every token chooses k of E, each as often as any other and for itself.

    Source:
        Feller: An Introduction to Probability Theory and Its Applications, 1950, IV.2 (the boxes
        that balls leave empty).
    """
    if model.experts <= 1:
        return np.ones_like(tokens)
    share = model.active_experts / model.experts
    return model.experts * (1.0 - np.power(1.0 - share, tokens))


def products(share: ModelSharding, tokens: Floats, engine: Engine) -> tuple[KernelWork, KernelWork]:
    """Into the wide part and back, on one device; all weights that are touched are read.

    Groups of devices hold some experts each, and a device of such a group a share of their width;
    no device waits for one whose experts are chosen more often. Products of many small matrices
    are as fast as one as large as all: nobody's measurement of them is used.
    """
    model = share.model
    everyone = tokens * share.groups
    rows = everyone * count_chosen_experts(model) / share.expert_groups
    copies = count_touched_experts(model, everyone) / share.expert_groups
    hidden = np.full_like(rows, model.hidden)
    inner = model.ffn / share.expert_devices
    wide = (2.0 if model.gated else 1.0) * inner
    return (
        engine.product(rows, hidden, wide, copies=copies),
        engine.product(rows, inner, hidden, copies=copies),
    )


def activation_bytes(share: ModelSharding, engine: Engine) -> Floats:
    """Return the bytes that the activation moves for a token on one device."""
    model = share.model
    rows = share.groups * count_chosen_experts(model) / share.expert_groups
    gates = 2.0 if model.gated else 1.0
    each = (gates * WORD + engine.operand_bytes) * model.ffn / share.expert_devices
    return rows * each


def routing(share: ModelSharding, tokens: Floats, engine: Engine) -> tuple[Floats, Floats]:
    """The seconds in which a layer's tokens find their experts, and the bytes that move then."""
    model = share.model
    if model.experts <= 1:
        nothing = np.zeros_like(tokens)
        return nothing, nothing
    scores = tokens * model.experts
    sent = tokens * share.groups * count_chosen_experts(model) / share.expert_groups
    weights = float(model.hidden * model.experts)
    moved = (
        WORD * (tokens * model.hidden + weights)
        + 2.0 * _SCORE * scores
        + 2.0 * (engine.operand_bytes + WORD) * sent * model.hidden
    )
    return _ROUTING_KERNELS * engine.plain.launch_s + engine.passes_s(moved), moved


def exchange_s(
    share: ModelSharding, tokens: Floats, engine: Engine, fabric: ServingFabric, summed_s: Floats
) -> Floats:
    """Return the time in which a layer's wide part receives tokens and returns results, (n,).

    Where devices have the attention of the same texts, all of them know all tokens, and one sum
    is all. Where some have other texts, each device sends its share of its group's tokens to
    those that hold their experts, at most one copy to each, gets as many back, and tells its group.

    Args:
        share: of a copy.
        tokens: of a group.
        engine: tells in how many bytes numbers are sent; they come back in 16 bits.
        fabric: joins the devices.
        summed_s: the time of a sum over a group's tokens.
    """
    if np.all(share.groups == 1):
        return summed_s
    everyone = share.devices * share.groups
    copies = np.minimum(count_chosen_experts(share.model) * share.expert_devices, everyone)
    own = tokens / share.devices * copies * share.model.hidden
    sent_s = fabric.exchange_s(engine.operand_bytes * own, everyone)
    back_s = fabric.exchange_s(WORD * own, everyone)
    gathered_s = summed_s / 2.0
    return np.where(share.groups == 1, summed_s, sent_s + back_s + gathered_s)
