"""Evaluator ``clusters.test-time-compute``: cost by model size, answer length and answer count."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dse.core.batch import Batch
from dse.core.metric import Metric, Metrics
from dse.core.values import Floats
from dse.errors import SpecError
from dse_evaluators.clusters.reasoning.query_cost import Query, SparseAttention, cost
from dse_evaluators.clusters.reasoning.reasoners import (
    COUNTS,
    REASONERS,
    compute_solved_share,
    count_multiplied,
    model_of,
    weights,
)
from dse_evaluators.declared_evaluator import DeclaredEvaluator
from dse_evaluators.reading_table import NumberInput, Reading, Readings, one_of
from dse_evaluators.readings import word
from dse_evaluators.workloads.model_source import model_edition, plain_transformer_of

ATTENTIONS = ("dense", "top-k", "block-top-k")
"""Attention to all earlier tokens, to the top-k of a free search, or to the top-k blocks."""

_PARTS = ("linear", "attention", "search", "cache")
_METRICS = (
    Metric(name="operations", goal="minimize"),
    *(Metric(name=f"{part}_operations", part_of="operations") for part in _PARTS),
    Metric(name="flops", goal="minimize"),
    Metric(name="moved", unit="B", goal="minimize"),
    Metric(name="device_time", unit="s", goal="minimize"),
    Metric(name="attention_ratio"),
    Metric(name="cache_memory", unit="B", goal="minimize"),
    Metric(name="assumed_solved", goal="maximize"),
    Metric(name="bottleneck", words=_PARTS),
)
_NO_CURVE = (
    "what your models solve is not assumed",
    "join reasoning.allocation with your pass@k in the same study",
)
_READINGS: Mapping[str, Reading] = {
    "model": one_of(REASONERS),
    "attention": one_of(ATTENTIONS, ATTENTIONS[0]),
    "tokens": NumberInput(1, 1e9),
    "trials": NumberInput(1, 1e6, default=1.0, whole=True),
    "prompt": NumberInput(0, 1e9, default=1024.0),
    "budget": NumberInput(1, 1e9, default=1024.0),
    "block": NumberInput(1, 1e6, default=16.0),
    "cache_bits": NumberInput(1, 64, default=16.0),
}


class Reasoning(DeclaredEvaluator, reads=_READINGS, provides=_METRICS, version="1"):
    """Cost of test-time compute: operations, KV cache traffic and device time of a query.

    ``operations`` adds the floating-point operations and the KV cache bytes read, each byte
    converted to ``rate / bandwidth`` operations: as many as the device performs while it reads a
    byte. ``device_time`` is ``operations / rate``, i.e. compute and reads do not overlap. ``flops``
    leaves the bytes out. ``attention_ratio`` is the operations outside of the linear layers,
    divided by those of the linear layers. ``cache_memory`` is the KV cache of all answers when they
    end. ``assumed_solved`` is an assumed curve in the answer length, the attention budget and the
    number of answers: it indicates the direction of an effect, not the accuracy of a real model.

    Args:
        models: your language models by name, each as ``model`` of ``clusters.serving``, in place of
            the sizes of Qwen3. What they solve is not assumed: join ``reasoning.allocation`` with
            your pass@k in the same study.
        counted: ``multiplied`` counts the weights used for each token, ``stored`` those in the
            published files, as the paper does.
        rate: peak rate of the device [FLOP/s]; by default that of B200 in fp8, as in the paper.
        bandwidth: memory bandwidth of the device [B/s].

    Inputs:
        tokens: length of an answer.
        trials: answers to a query.
        prompt: tokens.
        budget: tokens that sparse attention covers.
        block: tokens of a block of ``block-top-k``.
        cache_bits: per cached element.

    Limits:
        Not modelled: prefill, the bytes of weights, overlap of compute and memory reads.
        ``assumed_solved`` is an assumed curve, not a measurement.

    Error:
        Agrees with the cost model of the paper's code in the printed digits (ratios 2.42 and 23.9,
        gains 375 and 20). The code's sums for sparse attention are wrong for answers shorter than
        the budget; here they are exact.

    Example:
        parameters: {model: [qwen3-0.6b, qwen3-8b], tokens: [1024, 8192], attention: [dense, top-k]}

    Source:
        Sadhukhan et al.: Kinetics: Rethinking Test-Time Scaling Laws, 2025.

    Raises:
        SpecError: an option is out of range, or not one of the allowed names.
    """

    models: Mapping[str, Any] | None = None
    counted: str = "multiplied"
    rate: float = 4.5e15
    bandwidth: float = 8e12
    tokens: float | None = None
    trials: int | None = None
    prompt: float | None = None
    budget: float | None = None
    block: float | None = None
    cache_bits: float | None = None

    def __post_init__(self) -> None:
        word(*COUNTS)("counted", self.counted)
        if not (self.rate > 0 and self.bandwidth > 0):
            raise SpecError("rate and bandwidth must be positive", hint="rate: 4.5e15")
        if self.models is None:
            self._models = {name: model_of(name) for name in REASONERS}
            super().__post_init__()
            return
        if not self.models:
            raise SpecError("models is empty", hint="models: {small: qwen3-0.6b}", part=["models"])
        if self.counted == "stored":
            problem = "the weights stored in the files of your models are unknown"
            raise SpecError(problem, hint="counted: multiplied", part=["counted"])
        self._models = {
            name: plain_transformer_of(source, "clusters.test-time-compute", "models")
            for name, source in self.models.items()
        }
        self.declare(Readings.of({**_READINGS, "model": one_of(self._models)}, self))
        self.provides = {one.name: one for one in _METRICS if one.name != "assumed_solved"}
        self.absent_metrics = {"assumed_solved": _NO_CURVE}
        editions = "".join(f"-{name}{model_edition(one)}" for name, one in self.models.items())
        self.version = f"{type(self).version}{editions}"

    def evaluate(self, batch: Batch) -> Metrics:
        """Return the costs of a query in n designs, as arrays (n,) by metric name."""
        inputs = self._readings.columns(batch)
        attention = inputs["attention"]
        query = self._query(batch, inputs)
        sparse = SparseAttention(
            some=attention > 0,
            budget=inputs["budget"],
            block=np.where(attention == ATTENTIONS.index("block-top-k"), inputs["block"], 0.0),
        )
        found = cost(query, sparse)
        moved = found.cache_bytes + found.search_bytes
        parts = {
            "linear_operations": found.linear_flops,
            "attention_operations": found.attention_flops,
            "search_operations": found.search_flops,
            "cache_operations": moved * (self.rate / self.bandwidth),
        }
        whole = found.flops + parts["cache_operations"]
        held = query.prompt + query.written * query.trials
        columns = {
            **parts,
            "operations": whole,
            "flops": found.flops,
            "moved": moved,
            "device_time": whole / self.rate,
            "attention_ratio": whole / found.linear_flops - 1.0,
            "cache_memory": 2.0 * query.cache_bytes * held * query.key_width,
            "bottleneck": np.argmax(np.stack(list(parts.values())), axis=0).astype(np.float64),
        }
        if self.models is None:
            columns["assumed_solved"] = compute_solved_share(
                ceiling=_of_model(batch, {k: v.ceiling for k, v in REASONERS.items()}),
                midpoint=_of_model(batch, {k: v.midpoint for k, v in REASONERS.items()}),
                query=query,
                sparse=sparse,
            )
        return Metrics(columns={name: columns[name] for name in self.provides})

    def _query(self, batch: Batch, inputs: Mapping[str, Floats]) -> Query:
        models = self._models
        counts = {
            name: count_multiplied(one) if self.models else weights(name, self.counted)
            for name, one in models.items()
        }
        return Query(
            weights=_of_model(batch, counts),
            query_width=_of_model(
                batch, {k: float(m.heads * m.head * m.layers) for k, m in models.items()}
            ),
            key_width=_of_model(
                batch, {k: float(m.kv_heads * m.head * m.layers) for k, m in models.items()}
            ),
            prompt=inputs["prompt"],
            written=inputs["tokens"],
            trials=inputs["trials"],
            cache_bytes=inputs["cache_bits"] / 8.0,
        )


def _of_model(batch: Batch, table: Mapping[str, float]) -> Floats:
    return batch.lookup("model", dict(table.items()))
