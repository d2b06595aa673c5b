"""How long one block of a transformer takes on its share of a layer, forward."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from dse.core.batch import Distinct
from dse.core.values import Floats
from dse_evaluators.accelerators.devices import roofline
from dse_evaluators.accelerators.devices.roofline import Constants, Work
from dse_evaluators.clusters.training.plan import Job, Plan

Size = Floats | float

SEEN_BY_KERNELS = frozenset({"tp", "microbatch", "sequence_parallel"})
"""The knobs of a plan that decide what one kernel does."""

WORD_BYTES = 2.0
"""Activations: bf16 or fp16."""

# Passes over an array, reads and writes together: of a norm 2; of bias, dropout and the residual
# 3 and a mask of one byte; of an activation function 2; of scale, mask, softmax and dropout 5.
_NORM, _RESIDUAL, _ACTIVATION, _SOFTMAX = 2.0, 3.5, 2.0, 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Chip:
    """What a device makes of kernels in one format."""

    constants: Constants
    flops_per_s: float
    bytes_per_s: float

    def product_s(self, m: Size, k: Size, n: Size, copies: Size = 1.0) -> Floats:
        """The time of ``copies`` products of m x k by k x n in one kernel."""
        m = np.asarray(m, dtype=np.float64)
        work = Work(
            flops=2.0 * m * k * n * copies,
            moved_bytes=WORD_BYTES * copies * (m * k + k * n + m * n),
            chain=np.asarray(k, dtype=np.float64),
            converted=m * k * copies,
        )
        return roofline.times(
            work, self.constants, flops_per_s=self.flops_per_s, bytes_per_s=self.bytes_per_s
        ).total_s

    def passes_s(self, moved_bytes: Floats) -> Floats:
        """The time of a kernel that only moves, elementwise."""
        return self.constants.launch_s + moved_bytes / (
            self.constants.memory_share * self.bytes_per_s
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """Seconds of kernels for one microbatch, those of a layer forward; every field is (n,)."""

    products_s: Floats
    head_s: Floats
    """Not of a layer: the model's head, forward and backward."""
    core_s: Floats
    """The products of queries with keys and of what they find with values."""
    softmax_s: Floats
    elementwise_s: Floats

    @property
    def forward_s(self) -> Floats:
        return self.products_s + self.core_s + self.softmax_s + self.elementwise_s

    def spread(self, among: Distinct) -> Block:
        """The same for all plans that are like these."""
        return Block(**{one.name: among.spread(getattr(self, one.name)) for one in fields(self)})

    @property
    def backward_s(self) -> Floats:
        """Two products for each, and one and a half passes for each pass."""
        return 2.0 * (self.products_s + self.core_s) + 1.5 * (self.softmax_s + self.elementwise_s)


def block(job: Job, plan: Plan, chip: Chip) -> Block:
    """The kernels of a layer on one device.

    Source:
        Shoeybi et al.: Megatron-LM, 2019, section 3 (who holds which columns); Korthikanti et al.:
        Reducing Activation Recomputation in Large Transformer Models, 2022, figures 4 and 5;
        Dao: FlashAttention-2, 2023 (fused).
    """
    model, sequence, fused = job.model, job.sequence, job.fused
    tokens, share = plan.microbatch * sequence, plan.tensor
    hidden = float(model.hidden)
    inner = model.ffn / share
    heads = model.heads / share
    together = (model.heads + 2.0 * np.maximum(model.kv_heads, share)) * model.head / share
    products_s = (
        chip.product_s(tokens, hidden, together)
        + chip.product_s(tokens, heads * model.head, hidden)
        + chip.product_s(tokens, hidden, (2.0 if model.gated else 1.0) * inner)
        + chip.product_s(tokens, inner, hidden)
    )
    side = float(sequence)
    visible = 0.5 if fused and model.causal else 1.0
    pairs = plan.microbatch * heads * visible
    core_s = chip.product_s(side, float(model.head), side, pairs) + chip.product_s(
        side, side, float(model.head), pairs
    )
    scores = plan.microbatch * heads * side * side
    stream = WORD_BYTES * tokens * hidden / np.where(plan.sequence_parallel, share, 1.0)
    gates = 3.0 if model.gated else 2.0
    return Block(
        products_s=products_s,
        head_s=3.0 * chip.product_s(tokens, hidden, model.vocabulary / share),
        core_s=core_s,
        softmax_s=np.zeros_like(tokens) if fused else chip.passes_s(_SOFTMAX * WORD_BYTES * scores),
        elementwise_s=2.0 * chip.passes_s(_NORM * stream)
        + 2.0 * chip.passes_s(_RESIDUAL * stream)
        + chip.passes_s(gates / 2.0 * _ACTIVATION * WORD_BYTES * tokens * inner),
    )
