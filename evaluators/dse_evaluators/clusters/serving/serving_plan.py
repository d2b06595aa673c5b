"""Inputs of a serving plan, and the serving plans of a batch of designs as arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields

import numpy as np

from dse.core.batch import Batch
from dse.core.values import Array, Floats, Mask, Value
from dse.errors import SpecError
from dse_evaluators.accelerators.devices.recipes import RECIPES
from dse_evaluators.clusters.serving.model_memory import CACHE_BYTES
from dse_evaluators.reading_table import ChoiceInput, NumberInput, Reading, Readings, one_of
from dse_evaluators.workloads.transformer_configs import Transformer

_COUNT = NumberInput(1, 1e9, whole=True)
_OPTIONAL_COUNT = NumberInput(0, 1e9, default=0.0, whole=True)

MULTIPLIED: Mapping[Value, str] = {**{name: name for name in RECIPES}, "fp8_e4m3": "fp8"}
"""GEMM formats by input value: the names of ``RECIPES``, and the number format ``fp8_e4m3``."""

WEIGHT_ONLY: Mapping[Value, float] = {
    "int4": 4 + 16 / 128,
    "awq_int4": 4 + (16 + 4) / 128,
    "gptq_int4": 4 + (16 + 4) / 128,
    "mxfp4": 4 + 8 / 32,
}
"""Bits per weight of formats that kernels dequantize to bf16: a scale of 16 bits for 128 weights,
for AWQ and GPTQ also a zero point of 4 bits; for MXFP4 a scale of 8 bits for 32."""

SPELLINGS: Mapping[Value, str] = {**MULTIPLIED, **dict.fromkeys(WEIGHT_ONLY, "bf16")}
"""GEMM formats by input value, those of weights alone included."""

SAME = "same"
"""Format of the weights of prefill replicas, or of experts: that of the others."""

READINGS: Mapping[str, Reading] = {
    **dict.fromkeys(("tp", "batch"), _COUNT),
    **dict.fromkeys(("replicas", "ep", "attention_dp", "pp"), _COUNT._replace(default=1.0)),
    **dict.fromkeys(("prefill_replicas", "chunk"), _OPTIONAL_COUNT),
    **dict.fromkeys(
        ("prefill_tp", "prefill_pp", "prefill_ep", "prefill_attention_dp"), _OPTIONAL_COUNT
    ),
    "imbalance": NumberInput(1, 1e3, default=1.0),
    "redundant_experts": _OPTIONAL_COUNT,
    "draft_tokens": NumberInput(0, 64, default=0.0, whole=True),
    "weight_format": one_of(map(str, SPELLINGS), "bf16"),
    "prefill_weight_format": one_of((SAME, *map(str, MULTIPLIED)), SAME),
    "expert_format": one_of((SAME, *map(str, SPELLINGS)), SAME),
    "kv_format": ChoiceInput(dict(CACHE_BYTES.items()), "bf16"),
    "weight_bits": NumberInput(0, 64, default=0.0),
    "expert_bits": NumberInput(0, 64, default=0.0),
    "kv_bits": NumberInput(0, 64, default=0.0),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolPlan:
    """Parallel degrees of a pool of replicas, for prefill or decode; every field is (n,)."""

    tp: Floats
    groups: Floats
    """Attention groups of a stage (``attention_dp``)."""
    ep: Floats
    pp: Floats

    @property
    def stage_devices(self) -> Floats:
        """Devices of a pipeline stage, among which its experts are split, (n,)."""
        return self.tp * self.groups

    @property
    def devices(self) -> Floats:
        """Number of devices of a replica."""
        return self.stage_devices * self.pp


@dataclass(frozen=True, slots=True, kw_only=True)
class Plans:
    """Serving plans (replicas, parallel degrees, batch sizes) of n designs; every field is (n,)."""

    tp: Floats
    batch: Floats
    """Concurrent sequences of a replica, or of each attention group."""
    replicas: Floats
    prefill_replicas: Floats
    prefill_tp: Floats
    """Tensor-parallel devices of a prefill replica; 0: ``tp``. The next three are alike."""
    prefill_pp: Floats
    prefill_ep: Floats
    prefill_attention_dp: Floats
    chunk: Floats
    draft_tokens: Floats
    ep: Floats
    """Groups of devices over which the experts are split."""
    attention_dp: Floats
    """Groups of ``tp`` devices with separate sequences that share the experts."""
    pp: Floats
    """Pipeline stages of a replica, each on the same number of devices."""
    imbalance: Floats
    """Tokens of the group of experts with most tokens, over the mean of the groups."""
    redundant_experts: Floats
    """Experts of a layer that a replica has twice, as further experts."""

    def take(self, rows: Array) -> Plans:
        """Return the serving plans of the designs at the indices ``rows``."""
        return Plans(**{each.name: getattr(self, each.name)[rows] for each in fields(self)})

    @property
    def apart(self) -> Mask:
        """Whether separate replicas run the prefill of all requests, (n,)."""
        return self.prefill_replicas > 0

    @property
    def decode(self) -> PoolPlan:
        """Parallel degrees of the replicas that decode."""
        return PoolPlan(tp=self.tp, groups=self.attention_dp, ep=self.ep, pp=self.pp)

    @property
    def prefill(self) -> PoolPlan:
        """Parallel degrees of the replicas that run prefill."""
        if not self.apart.any():
            return self.decode

        def own(asked: Floats, usual: Floats) -> Floats:
            return np.where(self.apart & (asked > 0), asked, usual)

        return PoolPlan(
            tp=own(self.prefill_tp, self.tp),
            groups=own(self.prefill_attention_dp, self.attention_dp),
            ep=own(self.prefill_ep, self.ep),
            pp=own(self.prefill_pp, self.pp),
        )

    @property
    def devices(self) -> Floats:
        """Number of devices of all replicas, for decode and prefill, (n,)."""
        return self.decode.devices * self.replicas + self.prefill.devices * self.prefill_replicas


def plans(batch: Batch, readings: Readings) -> Plans:
    """Return the serving plans of n designs, with one array per input, (n,)."""
    return Plans(**{each.name: readings.column(each.name, batch) for each in fields(Plans)})


def check_expert_formats(model: Transformer, values: Mapping[str, Sequence[Value]]) -> None:
    """Refuse formats of experts for a model without experts.

    Raises:
        SpecError: ``values``, by input, contain such a format.
    """
    for name in ("expert_format", "expert_bits"):
        if set(values.get(name, ())) - {SAME, 0} and model.experts <= 1:
            raise SpecError(f"{name} of a model without experts", hint=f"leave {name} out")
