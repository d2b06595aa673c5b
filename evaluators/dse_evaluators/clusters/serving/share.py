"""Over how many devices one copy of a served model goes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dse.core.values import Floats
from dse_evaluators.workloads.transformer_configs import Transformer

WORD = 2.0
"""Bytes of a number of the stream."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSharding:
    """Over how many devices a copy of the model goes, and the bytes of a cached number; (n,).

    ``devices`` share the attention of the same texts. ``groups`` of them have texts of their own
    and share the experts, which ``expert_groups`` hold apart. There are so many for each of the
    ``stages`` that layers come in.
    """

    model: Transformer
    devices: Floats
    cache_bytes: Floats
    groups: Floats | float = 1.0
    expert_groups: Floats | float = 1.0
    stages: Floats | float = 1.0

    @property
    def expert_devices(self) -> Floats:
        """That share the width of one expert."""
        return self.devices * self.groups / self.expert_groups

    @property
    def kv_heads(self) -> Floats:
        """Of one device; with more devices than heads some hold the same ones."""
        return np.maximum(self.model.kv_heads / self.devices, 1.0)

    @property
    def token_bytes(self) -> Floats:
        """Keys and values of one token in one layer, on one device."""
        return 2.0 * self.kv_heads * self.model.head * self.cache_bytes
