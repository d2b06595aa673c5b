"""The plans of an inference server, read from a batch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import NamedTuple

import numpy as np

from dse.core.batch import Batch
from dse.core.values import Array, Floats, Value
from dse_evaluators.accelerators.devices.recipes import RECIPES
from dse_evaluators.clusters.serving.memory import CACHE_BYTES
from dse_evaluators.readings import number, word


class Knob(NamedTuple):
    """A reading: what it is where a space lacks it, None if it may not; and what it can be."""

    usual: Value | None
    check: Callable[[str, Value], None]


_COUNT = number(1, 1e9, whole=True)
_OPTIONAL_COUNT = number(0, 1e9, whole=True)

SPELLINGS: Mapping[Value, str] = {**{name: name for name in RECIPES}, "fp8_e4m3": "fp8"}
"""Formats of products by their names: those of devices, and those of number formats."""

KNOBS: Mapping[str, Knob] = {
    "tp": Knob(None, _COUNT),
    "batch": Knob(None, _COUNT),
    "replicas": Knob(1, _COUNT),
    "prefill_replicas": Knob(0, _OPTIONAL_COUNT),
    "prefill_tp": Knob(0, _OPTIONAL_COUNT),
    "chunk": Knob(0, _OPTIONAL_COUNT),
    "draft_tokens": Knob(0, number(0, 64, whole=True)),
    "ep": Knob(1, _COUNT),
    "attention_dp": Knob(1, _COUNT),
    "pp": Knob(1, _COUNT),
    "weight_format": Knob("bf16", word(*map(str, SPELLINGS))),
    "kv_format": Knob("bf16", word(*CACHE_BYTES)),
    "weight_bits": Knob(0.0, number(0, 64)),
    "kv_bits": Knob(0.0, number(0, 64)),
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


def plans(batch: Batch) -> Plans:
    """The numbers of a batch."""
    return Plans(**{each.name: _column(batch, each.name) for each in fields(Plans)})


def _column(batch: Batch, name: str) -> Floats:
    usual = KNOBS[name].usual
    found = batch[name] if usual is None else batch.get(name, usual)
    return np.asarray(found, dtype=np.float64)
