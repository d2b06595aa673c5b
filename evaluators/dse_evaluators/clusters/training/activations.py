"""Memory of the activations that a training step keeps for its backward pass."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dse.core.values import Floats
from dse_evaluators.clusters.training.block_time import expert_tokens
from dse_evaluators.clusters.training.training_plan import (
    RECOMPUTED,
    SCHEDULES,
    TrainingJob,
    TrainingPlan,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ActivationMemory:
    """Bytes of activations of one microbatch; every field is (n,)."""

    layer: Floats
    mask: Floats
    """Dropout mask of the embedding."""
    logits: Floats
    """Logits and input of the LM head, in 32 bits."""


def compute_kept_bytes(job: TrainingJob, plan: TrainingPlan) -> ActivationMemory:
    """Return the bytes of activations that one microbatch keeps for the backward pass, (n,)."""
    model, tokens = job.model, plan.tokens(job.sequence)
    everyone = np.where(plan.sequence_parallel, plan.tensor, 1.0)
    return ActivationMemory(
        layer=_layer_bytes(job, plan),
        mask=tokens * model.hidden / everyone,
        logits=4.0 * tokens * (model.hidden / everyone + model.vocabulary / plan.tensor),
    )


def activations(
    plan: TrainingPlan, kept: ActivationMemory, *, layers: Floats, spared: Floats
) -> Floats:
    """Return the larger of the activation bytes on the first and on the last stage, (n,).

    The first stage holds the most microbatches, each with the mask of the embedding; the last holds
    one, with its logits in 32 bits. Where all-to-alls overlap, one more is in flight. DualPipe
    keeps activations of one stage more than the pipeline has; there, one device has the first and
    the last stage.

    Args:
        plan: the parallel layouts.
        kept: bytes of the activations of one microbatch.
        layers: layers of the stage with the most, (n,).
        spared: how many layers fewer the first and the last stage each have, (n,).

    Source:
        Korthikanti et al., 2022, equation 5 and appendix B (interleaving); Qi et al.: Zero Bubble
        Pipeline Parallelism, 2023, table 2 (ZB-H1 as 1F1B, ZB-H2 ``2 p - 1`` microbatches);
        DeepSeek-AI: DeepSeek-V3, 2024, table 2, and deepseek-ai/DualPipe (``PP + 1`` stages).
    """
    twice = plan.schedule == SCHEDULES.index("zero_bubble_2x")
    most = np.where(twice, 2.0 * plan.pipeline - 1.0, plan.pipeline)
    waiting = 1.0 + (plan.pipeline - 1.0) / (plan.pipeline * plan.interleave)
    # The microbatch behind which all-to-alls hide
    dual = plan.schedule >= SCHEDULES.index("dualpipe")
    most = most + np.where(dual, 1.0 / plan.chunks, plan.overlap_experts)
    inflight = np.minimum(plan.microbatches, most) * np.where(plan.interleave > 1, waiting, 1.0)
    # The end stage with one layer less holds all microbatches; the next stage holds all layers.
    held = layers * inflight - spared * np.minimum(inflight, layers)
    first = kept.layer * held + kept.mask * plan.pipeline
    last = kept.layer * layers * (1.0 + plan.overlap_experts) + kept.logits
    return np.where(plan.joins_ends, first + kept.logits, np.maximum(first, last))


def _layer_bytes(job: TrainingJob, plan: TrainingPlan) -> Floats:
    """Return the bytes of activations that one layer keeps for one microbatch, (n,).

    The paper assumes a feed-forward width of four times the hidden width, and as many key as query
    heads; here both are the model's. Inputs of GEMMs are kept in the GEMM format, others in that of
    activations.

    Source:
        Korthikanti et al.: Reducing Activation Recomputation in Large Transformer Models, 2022,
        equations 1-4 and 6; the kept inputs of experts are an addition of this project.
    """
    model = job.model
    tokens, operand, word = plan.tokens(job.sequence), plan.operand_bytes, plan.word_bytes
    everyone = np.where(plan.sequence_parallel, plan.tensor, 1.0)
    # Inputs of the two unsharded GEMMs, inputs of the two norms, and two dropout masks.
    stream = (2.0 * operand + 2.0 * word + 2.0) / everyone
    heads = model.heads * model.head / model.hidden
    keys = word * heads * (1.0 + 2.0 * model.kv_heads / model.heads) + operand * heads
    gates = 2.0 if model.gated else 1.0
    each = (gates * word + operand) * model.ffn / model.hidden / plan.tensor
    # Tokens sent to experts, and the results of experts before they are weighted.
    each += (operand + word) / everyone if model.experts > 1 else 0.0
    scores = 5.0 * model.heads * (job.sequence / model.hidden) / plan.tensor
    keeps_scores = (plan.recompute == RECOMPUTED.index("none")) & (not job.fused)
    held = tokens * (stream + keys / plan.tensor + np.where(keeps_scores, scores, 0.0))
    held += expert_tokens(job, plan) * each
    whole = plan.recompute == RECOMPUTED.index("full")
    return model.hidden * np.where(whole, tokens * word / everyone, held)
