"""Sharding of one copy of a served model over devices."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from dse.core.values import Floats
from dse_evaluators.clusters.serving.expert_popularity import (
    busiest_of_groups,
    selection_chances,
)
from dse_evaluators.workloads.parameter_count import cached_elements, index_bytes
from dse_evaluators.workloads.transformer_configs import Transformer, layer_kinds

WORD = 2.0
"""Bytes of a 16-bit activation element."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSharding:
    """Sharding of a model copy over devices, and the bytes of a cached element; arrays are (n,).

    ``devices`` is the tensor-parallel degree of attention. ``groups`` of that many devices serve
    separate sequences and share the experts, which are split over ``expert_groups``. Each of the
    ``stages`` of the pipeline has all of these devices, and at most one layer more than another.
    """

    model: Transformer
    devices: Floats
    cache_bytes: Floats
    groups: Floats | float = 1.0
    expert_groups: Floats | float = 1.0
    stages: Floats | float = 1.0
    imbalance: Floats | float = 1.0
    """Tokens of the expert group with most tokens, over the mean of the groups."""
    redundant: Floats | float = 0.0
    """Second copies of experts of a layer, which the expert groups hold besides the first."""
    popularity: float = 0.0
    """Exponent of the power law of the experts' popularity; 0: all are equally popular."""

    @property
    def kinds(self) -> tuple[ModelSharding, ...]:
        """Sharding of each kind of layers, as if all layers of the model were of that kind.

        Layers without experts, in a model that has them, are replicated in every attention group.
        """
        return tuple(self._of(kind) for kind in layer_kinds(self.model))

    def _of(self, kind: Transformer) -> ModelSharding:
        if kind is self.model:
            return self
        if kind.experts == self.model.experts:
            return replace(self, model=kind)
        return replace(self, model=kind, groups=1.0, expert_groups=1.0, redundant=0.0)

    @property
    def busiest(self) -> Floats:
        """Tokens of the busiest expert group, as a multiple of the mean over expert groups.

        The ratio is 1 where one group holds all experts.
        """
        imbalance = self.imbalance
        if self.popularity > 0:
            imbalance = np.maximum(imbalance, busiest_of_groups(self.chances, self.expert_groups))
        return np.minimum(imbalance, self.expert_groups)

    @property
    def chances(self) -> Floats:
        """Probability that a token selects each routed expert of a layer, (E,)."""
        model = self.model
        return selection_chances(model.experts, model.active_experts, self.popularity)

    @property
    def stage_layers(self) -> Floats:
        """Layers of the fullest pipeline stage, (n,) or ()."""
        return np.ceil(self.model.layers / np.asarray(self.stages, dtype=np.float64))

    @property
    def last_layers(self) -> Floats:
        """Layers of the last pipeline stage, which also has the LM head: the fewest, (n,) or ()."""
        return np.floor(self.model.layers / np.asarray(self.stages, dtype=np.float64))

    def kind_layers(self, kind: Transformer, stage: Floats) -> Floats:
        """Return the number of layers of a kind in a pipeline stage other than the first.

        The stage has ``stage`` layers. Dense first layers of a model with experts are in it only if
        it has more layers than the model has after them. Other kinds are spread over all stages.
        """
        model = self.model
        dense, others = float(model.dense_layers), float(model.layers - model.dense_layers)
        if dense and kind.experts < model.experts:
            return np.maximum(stage - others, 0.0) * (kind.layers / dense)
        return np.minimum(stage, others) * (kind.layers / others)

    @property
    def expert_devices(self) -> Floats:
        """Number of devices that divide the width of one expert among them."""
        return self.devices * self.groups / self.expert_groups

    @property
    def kv_heads(self) -> Floats:
        """Number of key-value heads on one device; replicated if devices outnumber heads."""
        return np.maximum(self.model.kv_heads / self.devices, 1.0)

    @property
    def token_bytes(self) -> Floats:
        """Bytes of the KV cache of one token in one layer on one device; layers must be equal."""
        return self.attended_bytes + index_bytes(self.model)

    @property
    def attended_bytes(self) -> Floats:
        """Bytes of ``token_bytes`` that attention to the token reads; the indexer reads the others.

        All devices keep the latents of latent attention, which its heads share.
        """
        model = self.model
        if model.kv_latent or model.state:
            return cached_elements(model) * self.cache_bytes
        return self.kv_heads * (model.head + model.value) * self.cache_bytes
