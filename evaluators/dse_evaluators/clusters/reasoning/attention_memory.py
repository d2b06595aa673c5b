"""Evaluator ``clusters.efficiency``: memory of a language model by attention and weight format."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import ClassVar

import numpy as np

from dse.core.metric import Failure, Metric, Metrics
from dse.core.values import Floats
from dse_evaluators.declared_evaluator import DeclaredEvaluator
from dse_evaluators.reading_table import NumberInput, Reading, Readings, one_of
from dse_evaluators.workloads.model_source import (
    ModelOption,
    edition_of_models,
    plain_transformers_of,
)
from dse_evaluators.workloads.parameter_count import (
    cached_elements,
    count_parameters,
    sequence_bytes,
)
from dse_evaluators.workloads.transformer_configs import PLAIN_TRANSFORMERS, Transformer

ATTENTIONS = ("own", "mha", "gqa", "mqa", "mla")
"""The model's own attention; a key and a value for each head, for each group of heads, or for all
heads; or a latent vector from which those of all heads are computed."""

_SCALE_BITS = 16.0
_METRICS = (
    Metric(name="cache_per_token", unit="B", goal="minimize"),
    Metric(name="cache", unit="B", goal="minimize"),
    Metric(name="weights", unit="B", goal="minimize"),
    Metric(name="memory", unit="B", goal="minimize"),
    Metric(name="cache_ratio", goal="maximize"),
    Metric(name="weight_ratio", goal="maximize"),
)
_INPUTS: Mapping[str, Reading] = {
    "model": one_of(PLAIN_TRANSFORMERS),
    "attention": one_of(ATTENTIONS, "own"),
    "groups": NumberInput(1, 1024, default=8.0, whole=True),
    "latent": NumberInput(1, 65_536, default=512.0, whole=True),
    "rotary": NumberInput(0, 1024, default=64.0, whole=True),
    "weight_bits": NumberInput(1, 32, default=16.0),
    "group": NumberInput(0, 65_536, default=0.0, whole=True),
    "cache_bits": NumberInput(1, 32, default=16.0),
    "context": NumberInput(1, 1e9, default=4096.0, whole=True),
    "sequences": NumberInput(1, 1e6, default=1.0, whole=True),
}


class MemoryEfficiency(DeclaredEvaluator, reads=_INPUTS, provides=_METRICS, version="1"):
    """Memory of a language model with its attention and its weight format replaced by others.

    ``cache_per_token`` are the bytes that a token adds to the KV cache of all layers, ``cache``
    those of all sequences, ``memory`` those of the weights too. ``cache_ratio`` is the cache with a
    key and a value for each head (multi-head attention) divided by ``cache``, ``weight_ratio`` the
    weights in 16 bits divided by the weights in this format.

    Args:
        model: a config.json, ``{like: llama3-8b, kv_heads: 4}``, a name of
            ``workloads.transformer_configs``, or a list of these, from which each design chooses;
            by default all names whose layers are alike.

    Inputs:
        attention: ``own``, that of the model; ``mha``, ``gqa`` with ``groups``, ``mqa`` or ``mla``.
        groups: heads of keys and values of ``gqa``; they divide the heads of the model.
        latent: width of the latent vector of ``mla``.
        rotary: width of the key with positions that ``mla`` keeps beside it.
        weight_bits: bits of a weight, without scales.
        group: weights that share a scale of 16 bits; 0 for no scales.
        cache_bits: bits of a cached element.
        context: tokens of a sequence.
        sequences: sequences at once.

    Limits:
        Counts, not speed or quality: retraining with another attention changes both. The weights
        of the projections follow the attention, except those of ``mla``, which keeps the model's
        own. All weights have the format, embeddings too.

    Error:
        None: the counts are exact. The cache of 576 elements for each token and layer, and 3.88
        times less memory in 4 bits with groups of 128, are those in print.

    Example:
        options: {model: [llama2-7b, {like: llama2-7b, name: deeper, layers: 48}]}
        parameters: {model: [llama2-7b, deeper], attention: [mha, gqa, mqa, mla]}

    Source:
        Yuan et al.: EfficientLLM, 2025, compares these; read in a summary, not in print.
        Shazeer: Fast Transformer Decoding, 2019 (MQA); Ainslie et al.: GQA, 2023; DeepSeek-AI:
        DeepSeek-V2, 2024, table 1 (MLA).
    """

    user_options: ClassVar[Sequence[str]] = ("model",)

    model: ModelOption | Sequence[ModelOption] | None = None
    groups: int | None = None
    latent: int | None = None
    rotary: int | None = None
    group: int | None = None
    cache_bits: float | None = None
    context: int | None = None
    sequences: int | None = None

    def __post_init__(self) -> None:
        self._models = plain_transformers_of(self.model, "clusters.efficiency")
        listed = self.model if isinstance(self.model, list | tuple) else None
        self.version = edition_of_models(type(self).version, *(listed or [self.model]))
        given = {name: value for name, value in vars(self).items() if name in _INPUTS}
        fixed = self.model is not None and listed is None
        given["model"] = next(iter(self._models)) if fixed else None
        usual = next(iter(self._models)) if len(self._models) == 1 else None
        readings = Readings({**_INPUTS, "model": one_of(self._models, usual)})
        self.declare(readings.fixed({name: one for name, one in given.items() if one is not None}))

    def compute(self, inputs: Mapping[str, Floats]) -> Metrics:
        """Return the memory of n designs; groups that do not divide the heads are infeasible."""
        models = list(self._models.values())
        keys = ("model", "attention", "groups", "latent", "rotary")
        kinds, place = np.unique(
            np.stack([inputs[name] for name in keys]), axis=1, return_inverse=True
        )
        elements, full, weights = np.array(
            [
                _count(models[int(model)], ATTENTIONS[int(kind)], *map(int, rest))
                for model, kind, *rest in kinds.T.tolist()
            ]
        )[place.ravel()].T
        scales = np.divide(
            _SCALE_BITS, inputs["group"], out=np.zeros(len(weights)), where=inputs["group"] > 0
        )
        per_token = elements * inputs["cache_bits"] / 8.0
        cache = per_token * inputs["context"] * inputs["sequences"]
        stored = weights * (inputs["weight_bits"] + scales) / 8.0
        columns = {
            "cache_per_token": per_token,
            "cache": cache,
            "weights": stored,
            "memory": cache + stored,
            "cache_ratio": full * 2.0 / per_token,
            "weight_ratio": weights * 2.0 / stored,
        }
        heads = np.array([model.heads for model in models], dtype=np.float64)
        own = heads[inputs["model"].astype(np.int64)]
        grouped = inputs["attention"] == ATTENTIONS.index("gqa")
        failures = {
            int(row): Failure(
                kind="infeasible",
                reason=f"{inputs['groups'][row]:g} groups do not divide {own[row]:g} heads",
            )
            for row in np.flatnonzero(grouped & (own % inputs["groups"] != 0))
        }
        return Metrics(columns=columns, failures=failures)


def _count(
    model: Transformer, attention: str, groups: int, latent: int, rotary: int
) -> tuple[float, float, float]:
    """Return a token's cached elements, those with all heads, and the weights."""
    own = sequence_bytes(model, 1, 1.0)
    full = float(model.layers * cached_elements(replace(model, kv_heads=model.heads)))
    if attention == "own":
        return own, full, float(count_parameters(model).total)
    if attention == "mla":
        elements = float(model.layers * (latent + rotary))
        return elements, full, float(count_parameters(model).total)
    heads = {"mha": model.heads, "gqa": min(groups, model.heads), "mqa": 1}[attention]
    changed = replace(model, kv_heads=heads)
    elements = float(model.layers * cached_elements(changed))
    return elements, full, float(count_parameters(changed).total)
