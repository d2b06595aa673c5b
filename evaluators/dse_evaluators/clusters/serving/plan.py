"""The plans of an inference server, read from a batch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

import numpy as np

from dse.core.batch import Batch
from dse.core.values import Array, Floats, Value
from dse_evaluators.accelerators.devices.recipes import RECIPES
from dse_evaluators.clusters.serving.memory import CACHE_BYTES
from dse_evaluators.reading_table import ChoiceInput, NumberInput, Reading, Readings, one_of

_COUNT = NumberInput(1, 1e9, whole=True)
_OPTIONAL_COUNT = NumberInput(0, 1e9, default=0.0, whole=True)

SPELLINGS: Mapping[Value, str] = {**{name: name for name in RECIPES}, "fp8_e4m3": "fp8"}
"""Formats of products by their names: those of devices, and those of number formats."""

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
    """n plans; every field is (n,)."""

    tp: Floats
    batch: Floats
    """Texts at once in one replica, or in each group that has its own."""
    replicas: Floats
    prefill_replicas: Floats
    prefill_tp: Floats
    """Of a replica that only reads prompts; 0: as the others."""
    chunk: Floats
    draft_tokens: Floats
    ep: Floats
    """Groups of devices that hold some of the experts each."""
    attention_dp: Floats
    """Groups of ``tp`` devices that have texts of their own and share the experts."""
    pp: Floats
    """Stages that a replica's layers come in, each on as many devices."""

    def take(self, rows: Array) -> Plans:
        """The plans of these rows."""
        return Plans(**{each.name: getattr(self, each.name)[rows] for each in fields(self)})

    @property
    def reading_tp(self) -> Floats:
        """Devices of a replica that reads prompts."""
        own = (self.prefill_replicas > 0) & (self.prefill_tp > 0)
        return np.where(own, self.prefill_tp, self.tp)

    @property
    def devices(self) -> Floats:
        once = self.tp * self.replicas + self.reading_tp * self.prefill_replicas
        return once * self.attention_dp * self.pp


def plans(batch: Batch, readings: Readings) -> Plans:
    """The numbers of a batch."""
    return Plans(**{each.name: readings.column(each.name, batch) for each in fields(Plans)})
