"""Kernel times of one transformer layer and of the LM head on one device, for one microbatch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from dse.core.values import Floats
from dse_evaluators.clusters.training.kernels import FORMATS, Chip, plain, plain_place, select_chips
from dse_evaluators.clusters.training.training_plan import TrainingJob, TrainingPlan

# Reads and writes of an array per kernel: norm 2; bias, dropout and residual 3 and a one-byte mask;
# activation function 2; scale, mask, softmax and dropout 5; permuting tokens to their experts and
# back 2 each.
_NORM, _RESIDUAL, _ACTIVATION, _SOFTMAX, _ROUTING = 2.0, 3.5, 2.0, 5.0, 4.0


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockTime:
    """Forward seconds of a layer's kernels for one microbatch; every field is (n,)."""

    products_s: Floats
    """GEMMs with weights."""
    head_s: Floats
    """The LM head, forward and backward; not part of a layer."""
    core_s: Floats
    """Attention core: products of queries with keys, and of scores with values."""
    softmax_s: Floats
    """Softmax of the scores, where it is a separate kernel."""
    elementwise_s: Floats

    @property
    def forward_s(self) -> Floats:
        return self.products_s + self.core_s + self.softmax_s + self.elementwise_s

    @property
    def backward_s(self) -> Floats:
        """Backward seconds of a layer: 2 x forward GEMMs plus 1.5 x elementwise kernels, (n,)."""
        return 2.0 * (self.products_s + self.core_s) + 1.5 * (self.softmax_s + self.elementwise_s)

    @property
    def weights_s(self) -> Floats:
        """Seconds to compute a layer's weight gradients, which delay no other stage, (n,)."""
        return self.products_s


def block(job: TrainingJob, plan: TrainingPlan, chips: Mapping[str, Chip]) -> BlockTime:
    """Compute the kernel times of a layer on one device.

    GEMMs with weights are in the plan's format. The attention core, norms and other elementwise
    kernels are in the format of activations, the LM head is in 16 bits. With context parallelism
    each device keeps its queries and processes the keys of one device at a time.

    Source:
        Shoeybi et al.: Megatron-LM, 2019, section 3 (sharding of columns and rows); Korthikanti et
        al.: Reducing Activation Recomputation in Large Transformer Models, 2022, figures 4 and 5;
        Dao: FlashAttention-2, 2023 (fused); Liu et al.: Ring Attention, 2023, section 3.
    """
    model, fused, wide, between = job.model, job.fused, plain(chips), _between_products(plan, chips)
    tokens, share = plan.tokens(job.sequence), plan.tensor
    side = job.sequence / plan.context
    visible = 0.5 if fused and model.causal else 1.0
    pairs = plan.microbatch * (model.heads / share) * visible
    met_s = between.product_s(side, float(model.head), side, pairs) + between.product_s(
        side, side, float(model.head), pairs
    )
    scores = plan.microbatch * (model.heads / share) * side * job.sequence
    softmax_s = between.passes_s(_SOFTMAX * plan.word_bytes * scores)
    return BlockTime(
        products_s=_products_s(job, plan, select_chips(chips, plan.number_format, plan.word_bytes)),
        head_s=3.0 * wide.product_s(tokens, float(model.hidden), model.vocabulary / share),
        core_s=plan.context * met_s,
        softmax_s=np.zeros_like(tokens) if fused else softmax_s,
        elementwise_s=_elementwise_s(job, plan, between),
    )


def _between_products(plan: TrainingPlan, chips: Mapping[str, Chip]) -> Chip:
    """Return the constants of the kernels between the GEMMs with weights, by activation format."""
    usual = float(plain_place(chips))
    narrow = plan.activation_format > 0
    return select_chips(chips, np.where(narrow, FORMATS.index("fp8"), usual), plan.word_bytes)


def expert_tokens(job: TrainingJob, plan: TrainingPlan) -> Floats:
    """Return the tokens of a microbatch that the busiest device's experts process, (n,).

    A token counts once per active expert; without experts the result is the number of tokens.
    """
    tokens, model = plan.tokens(job.sequence), job.model
    return tokens * model.active_experts * job.imbalance if model.experts > 1 else tokens


def _products_s(job: TrainingJob, plan: TrainingPlan, chip: Chip) -> Floats:
    """Return the seconds of a layer's GEMMs with weights; experts run as one grouped GEMM."""
    model, share = job.model, plan.tensor
    tokens, hidden = plan.tokens(job.sequence), float(model.hidden)
    together = (model.heads + 2.0 * np.maximum(model.kv_heads, share)) * model.head / share
    held = model.experts / plan.expert
    rows = expert_tokens(job, plan) / held
    inner = model.ffn / share
    dense_s = chip.product_s(tokens, hidden, together) + chip.product_s(
        tokens, (model.heads / share) * model.head, hidden
    )
    wide_s = chip.product_s(rows, hidden, (2.0 if model.gated else 1.0) * inner, held)
    chooser_s = chip.product_s(tokens, hidden, model.experts) if model.experts > 1 else 0.0
    return dense_s + wide_s + chip.product_s(rows, inner, hidden, held) + chooser_s


def _elementwise_s(job: TrainingJob, plan: TrainingPlan, chip: Chip) -> Floats:
    model = job.model
    shared = np.where(plan.sequence_parallel, plan.tensor, 1.0)
    stream = plan.word_bytes * plan.tokens(job.sequence) * model.hidden / shared
    routed = expert_tokens(job, plan)
    inner = plan.word_bytes * routed * model.ffn / plan.tensor
    gates = 3.0 if model.gated else 2.0
    found_s = (
        2.0 * chip.passes_s(_NORM * stream)
        + 2.0 * chip.passes_s(_RESIDUAL * stream)
        + chip.passes_s(gates / 2.0 * _ACTIVATION * inner)
    )
    if model.experts > 1:
        found_s += 2.0 * chip.passes_s(
            _ROUTING / 2.0 * plan.word_bytes * routed * model.hidden / shared
        )
    return found_s
