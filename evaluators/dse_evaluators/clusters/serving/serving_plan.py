"""Inputs of a serving plan, and the serving plans of a batch of designs as arrays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

import numpy as np

from dse.core.batch import Batch
from dse.core.values import Array, Floats, Value
from dse_evaluators.accelerators.devices.recipes import RECIPES
from dse_evaluators.clusters.serving.model_memory import CACHE_BYTES
from dse_evaluators.reading_table import ChoiceInput, NumberInput, Reading, Readings, one_of

_COUNT = NumberInput(1, 1e9, whole=True)
_OPTIONAL_COUNT = NumberInput(0, 1e9, default=0.0, whole=True)

SPELLINGS: Mapping[Value, str] = {**{name: name for name in RECIPES}, "fp8_e4m3": "fp8"}
"""GEMM formats by input value: the names of ``RECIPES``, and the number format ``fp8_e4m3``."""

READINGS: Mapping[str, Reading] = {
    **dict.fromkeys(("tp", "batch"), _COUNT),
    **dict.fromkeys(("replicas", "ep", "attention_dp", "pp"), _COUNT._replace(default=1.0)),
    **dict.fromkeys(("prefill_replicas", "prefill_tp", "chunk"), _OPTIONAL_COUNT),
    "draft_tokens": NumberInput(0, 64, default=0.0, whole=True),
    "weight_format": one_of(map(str, SPELLINGS), "bf16"),
    "kv_format": ChoiceInput(dict(CACHE_BYTES.items()), "bf16"),
    "weight_bits": NumberInput(0, 64, default=0.0),
    "kv_bits": NumberInput(0, 64, default=0.0),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Plans:
    """Serving plans (replicas, parallel degrees, batch sizes) of n designs; every field is (n,)."""

    tp: Floats
    batch: Floats
    """Concurrent sequences of a replica, or of each attention group."""
    replicas: Floats
    prefill_replicas: Floats
    prefill_tp: Floats
    """Tensor-parallel devices of a prefill replica; 0: ``tp``."""
    chunk: Floats
    draft_tokens: Floats
    ep: Floats
    """Groups of devices over which the experts are split."""
    attention_dp: Floats
    """Groups of ``tp`` devices with separate sequences that share the experts."""
    pp: Floats
    """Pipeline stages of a replica, each on the same number of devices."""

    def take(self, rows: Array) -> Plans:
        """Return the serving plans of the designs at the indices ``rows``."""
        return Plans(**{each.name: getattr(self, each.name)[rows] for each in fields(self)})

    @property
    def reading_tp(self) -> Floats:
        """Number of tensor-parallel devices of a replica that runs prefill."""
        own = (self.prefill_replicas > 0) & (self.prefill_tp > 0)
        return np.where(own, self.prefill_tp, self.tp)

    @property
    def devices(self) -> Floats:
        """Number of devices of all replicas, for decode and prefill, (n,)."""
        once = self.tp * self.replicas + self.reading_tp * self.prefill_replicas
        return once * self.attention_dp * self.pp


def plans(batch: Batch, readings: Readings) -> Plans:
    """Return the serving plans of the n designs of a batch."""
    return Plans(**{each.name: readings.column(each.name, batch) for each in fields(Plans)})
