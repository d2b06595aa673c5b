"""What a training step keeps in the memory of its fullest device."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dse.core.values import Floats
from dse_evaluators.clusters.training.plan import RECOMPUTED, Job, Plan
from dse_evaluators.workloads.transformer_configs import Transformer

WEIGHT_BYTES, GRADIENT_BYTES, OPTIMIZER_BYTES = 2.0, 4.0, 12.0
"""A weight in 16 bits, its gradient in 32, and a copy of it with two moments in 32."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """Bytes on the first stage of the pipeline; every field is (n,)."""

    weights: Floats
    gradients: Floats
    optimizer: Floats
    activations: Floats

    @property
    def total(self) -> Floats:
        return self.weights + self.gradients + self.optimizer + self.activations


def block_weights(model: Transformer) -> float:
    """The weights of one layer, without biases and norms."""
    attention = model.hidden * (model.together + model.heads * model.head)
    return attention + (3 if model.gated else 2) * model.hidden * model.ffn


def weights(model: Transformer, plan: Plan) -> Floats:
    """The weights on one device of the first stage: its layers and the embedding."""
    layers = block_weights(model) * model.layers / plan.pipeline
    return (layers + model.vocabulary * model.hidden) / plan.tensor


def memory(job: Job, plan: Plan) -> Memory:
    """The parts of the memory.

    Source:
        Korthikanti et al.: Reducing Activation Recomputation in Large Transformer Models, 2022,
        equations 1-6 and appendix B (activations, interleaving), table 2; Rajbhandari et al.: ZeRO,
        2020, section 5 (what each stage shares).
    """
    count = weights(job.model, plan)
    shared = [np.where(plan.zero >= stage, plan.data, 1.0) for stage in (3, 2, 1)]
    return Memory(
        weights=WEIGHT_BYTES * count / shared[0],
        gradients=GRADIENT_BYTES * count / shared[1],
        optimizer=OPTIMIZER_BYTES * count / shared[2],
        activations=_held(job.model, plan) * layer_bytes(job, plan) + _inputs_bytes(job, plan),
    )


def layer_bytes(job: Job, plan: Plan) -> Floats:
    """The activations of one layer and microbatch that wait for the backward pass.

    The paper's layer has four times the hidden width within and as many key as query heads; the
    terms of those two are scaled to the model's.
    """
    model = job.model
    tokens, share = plan.microbatch * job.sequence, plan.tensor
    everyone = np.where(plan.sequence_parallel, share, 1.0)
    wide = (3.0 if model.gated else 2.0) / 2.0 * model.ffn / (4.0 * model.hidden)
    keys = 2.0 + 4.0 * model.kv_heads / model.heads + 2.0  # queries, keys with values, the result
    inside = (keys + 16.0 * wide) / share
    scores = 5.0 * model.heads * job.sequence / model.hidden / share
    keeps_scores = (plan.recompute == RECOMPUTED.index("none")) & (not job.fused)
    held = 10.0 / everyone + inside + np.where(keeps_scores, scores, 0.0)
    whole = plan.recompute == RECOMPUTED.index("full")
    return tokens * model.hidden * np.where(whole, 2.0 / everyone, held)


def _held(model: Transformer, plan: Plan) -> Floats:
    """Layers times microbatches whose activations the first stage holds at once."""
    layers = model.layers / plan.pipeline
    inflight = np.minimum(plan.microbatches, plan.pipeline)
    waiting = 1.0 + (plan.pipeline - 1.0) / (plan.pipeline * plan.interleave)
    return layers * inflight * np.where(plan.interleave > 1, waiting, 1.0)


def _inputs_bytes(job: Job, plan: Plan) -> Floats:
    """The dropout mask of the embedding, and where the first stage is the last, the logits."""
    model, tokens = job.model, plan.microbatch * job.sequence
    everyone = np.where(plan.sequence_parallel, plan.tensor, 1.0)
    masks = tokens * model.hidden * plan.pipeline / everyone
    logits = 4.0 * tokens * (model.hidden / everyone + model.vocabulary / plan.tensor)
    return masks + np.where(plan.pipeline == 1, logits, 0.0)
