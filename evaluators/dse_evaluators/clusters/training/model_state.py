"""Model state on a device: weights, gradients and optimizer state, with ZeRO sharding."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dse.core.values import Floats
from dse_evaluators.clusters.training.kernels import WORD_BYTES
from dse_evaluators.clusters.training.training_plan import TrainingPlan
from dse_evaluators.workloads.transformer_configs import Transformer

OPTIMIZER_BYTES = 12.0
"""Bytes per weight: master copy and two Adam moments in fp32."""


def block_weights(model: Transformer) -> float:
    """Return the number of weights of a layer with all experts, without biases and norms."""
    return common_weights(model) + model.experts * expert_weights(model)


def common_weights(model: Transformer) -> float:
    """Return the number of a layer's weights that every token uses: attention and the router."""
    chooser = model.hidden * model.experts if model.experts > 1 else 0
    return float(model.hidden * (model.together + model.heads * model.head) + chooser)


def expert_weights(model: Transformer) -> float:
    """Return the number of weights of a layer's feed-forward network, or of one expert."""
    return float((3 if model.gated else 2) * model.hidden * model.ffn)


SEEN_BY_STATE = frozenset(
    {"tp", "pp", "dp", "cp", "ep", "zero", "zero_group", "schedule"}
    | {"secondary_group", "quantized_weights"}
    | {"number_format", "gradient_format"}
)
"""Inputs of a plan that determine the model state on a device."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """Weight counts on a device of the first or last pipeline stage; every field is (n,).

    Weights of ``experts`` have fewer replicas than those of ``layers``, and are 0 for a dense
    model; ``edge`` are the embedding and the LM head, which are always in 16 bits.
    """

    layers: Floats
    experts: Floats
    edge: Floats

    @property
    def total(self) -> Floats:
        return self.layers + self.experts + self.edge

    def stored_bytes(self, plan: TrainingPlan) -> Floats:
        """Return the bytes of the weights, (n,): layers in the GEMM format, edges in 16 bits."""
        return plan.operand_bytes * (self.layers + self.experts) + WORD_BYTES * self.edge

    def shares(self, plan: TrainingPlan, stage: int) -> Held:
        """Return weight counts per device, divided by the shards from ZeRO stage ``stage`` on."""
        shared = plan.zero >= stage
        among = np.where(shared, plan.shards, 1.0)
        few = np.where(shared, plan.expert_shards, 1.0)
        return Held(layers=self.layers / among, experts=self.experts / few, edge=self.edge / among)


def count_weights(model: Transformer, plan: TrainingPlan) -> Held:
    """Return the number of weights on a device of the first or last stage.

    The count covers the stage's layers, in each copy, and the embedding or the LM head, or both
    where one device has the first and the last stage.
    """
    most, spared = stage_layers(model, plan)
    layers = (most - spared) * plan.copies / plan.tensor
    whole = expert_weights(model)
    one, many = (0.0, model.experts * whole) if model.experts > 1 else (whole, 0.0)
    both = 1.0 if model.tied or not model.causal else 2.0
    edge = model.vocabulary * model.hidden * np.where(plan.joins_ends, both, 1.0)
    # If the end stages have one layer less, a middle stage has this layer instead of the edge.
    layer = common_weights(model) + one + many / plan.expert
    return Held(
        layers=layers * (common_weights(model) + one),
        experts=layers * many / plan.expert,
        edge=np.where(spared > 0, np.maximum(edge, layer), edge) / plan.tensor,
    )


def stage_layers(model: Transformer, plan: TrainingPlan) -> tuple[Floats, Floats]:
    """Return the layers of the largest stage, and how many fewer the first and last have, (n,)."""
    most = np.ceil(model.layers / plan.pipeline)
    return most, np.minimum((most * plan.pipeline - model.layers) / 2.0, 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelState:
    """Bytes of weights, gradients and optimizer state, on a device or its host; each (n,)."""

    layers: Floats
    """Layers of the fullest stage."""
    spared: Floats
    """Layers that each end stage has fewer."""
    elsewhere: Floats
    """Layers of the other stages, where end stages have no fewer than others."""
    whole_bytes: Floats
    """Bytes of the weights without ZeRO sharding."""
    weights_bytes: Floats
    gradients_bytes: Floats
    passing_gradients_bytes: Floats
    """Gradients of two layers, which stay on a device that keeps other gradients in its host."""
    optimizer_bytes: Floats
    updated: Floats
    """Number of weights that the device updates."""


def state(model: Transformer, plan: TrainingPlan) -> ModelState:
    """Return the bytes of model state on the fullest device of each of n plans.

    Source:
        Rajbhandari et al.: ZeRO, 2020, section 5 (ZeRO stages); Korthikanti et al.:
        Reducing Activation Recomputation in Large Transformer Models, 2022, table 2.
    """
    count = count_weights(model, plan)
    updated = count.shares(plan, 1).total
    layers, spared = stage_layers(model, plan)
    missing = layers * plan.pipeline - model.layers - 2.0 * spared
    gradients_bytes = plan.gradient_bytes * count.shares(plan, 2).total
    passing_bytes = plan.gradient_bytes * count.total * 2.0 / layers
    return ModelState(
        layers=layers,
        spared=spared,
        elsewhere=(plan.pipeline - 1.0) * layers - missing,
        whole_bytes=count.stored_bytes(plan),
        weights_bytes=count.shares(plan, 3).stored_bytes(plan),
        gradients_bytes=gradients_bytes,
        passing_gradients_bytes=np.minimum(passing_bytes, gradients_bytes),
        optimizer_bytes=OPTIMIZER_BYTES * updated,
        updated=updated,
    )
