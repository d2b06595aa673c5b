"""Evaluator ``recommenders.operator-time``: recommenders on CPUs and GPUs, by kind of operator."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from dse.core.batch import Batch
from dse.core.metric import Metric, Metrics
from dse.core.values import Floats
from dse.errors import SpecError, nearest
from dse_evaluators.alike import fix_columns, gather_parts, groups, infeasible_rows
from dse_evaluators.amounts import amount
from dse_evaluators.declared_evaluator import DeclaredEvaluator
from dse_evaluators.reading_table import NumberInput, Reading, Readings, one_of
from dse_evaluators.recommenders.model_operators import (
    KINDS,
    MODELS,
    RecommenderModel,
    read_model,
)

_BYTES, _INDEX_BYTES = 4.0, 8.0
_TRANSFER = "transfer"

_METRICS = (
    Metric(name="latency", unit="s", goal="minimize"),
    *(Metric(name=f"{kind}_time", unit="s", part_of="latency") for kind in (*KINDS, _TRANSFER)),
    Metric(name="throughput", unit="1/s", goal="maximize"),
    *(Metric(name=f"{kind}_share") for kind in (*KINDS, _TRANSFER)),
    Metric(name="memory", unit="B", goal="minimize"),
    Metric(name="bottleneck", words=(*KINDS, _TRANSFER)),
)
_NUMBERS: Mapping[str, Reading] = {"batch": NumberInput(1, 1 << 24, default=1, whole=True)}


@dataclass(frozen=True, slots=True, kw_only=True)
class RecommenderPlatform:
    """Rates that a platform reaches in single precision; a link brings inputs to it."""

    rate: float
    bandwidth: float
    row_bandwidth: float
    """Bandwidth with rows of tables that are read at random."""
    call_time: float
    """Time of the framework and the launch for a call of an operator."""
    memory: float
    link: float = 0.0
    """Bandwidth at which inputs arrive; 0: they are there."""


_FIGURES = {
    "rate": "FLOP/s",
    "bandwidth": "B/s",
    "row_bandwidth": "B/s",
    "call_time": "s",
    "memory": "B",
    "link": "B/s",
}
_NEEDED = tuple(name for name in _FIGURES if name != "link")
_EXAMPLE = (
    "{rate: 1 TFLOP/s, bandwidth: 77 GB/s, row_bandwidth: 30 GB/s, call_time: 3 us, memory: 256 GB}"
)


class OperatorTime(DeclaredEvaluator, reads=_NUMBERS, provides=_METRICS, version="1"):
    """Time of a recommender on a CPU or GPU by kind of operator, in single precision.

    The kinds are linear layers, look-ups of tables, attention, recurrent layers, others (which join
    and multiply vectors), and the transfer of inputs to a device behind a link. Each call of an
    operator takes ``call_time``, and the longer of its operations and its bytes.

    Args:
        platforms: CPUs and GPUs by name, each with the rates that it reaches: ``{cpu: {rate: 1
            TFLOP/s, bandwidth: 77 GB/s, row_bandwidth: 30 GB/s, call_time: 3 us, memory: 256
            GB}}``; a GPU also has ``link``.
        models: models of yours by name: the path of a JSON file with the keys of DLRM or
            DeepRecSys (``arch_mlp_top: 256-64-1`` and others), or a mapping with these keys.

    Inputs:
        model: one of the eight models of DeepRecSys, or of ``models``.
        platform: a name of ``platforms``.
        batch: samples of a run.

    Limits:
        Calls run one after another. Caches of the CPU, copies between several sockets and queues
        are left out. A model whose tables do not fit into the memory is infeasible.

    Error:
        Not validated: all rates are the user's.

    Source:
        Hsia et al.: Cross-Stack Workload Characterization of Deep Recommendation Systems, 2020 (the
        question); harvard-acc/DeepRecSys@1383176 (MIT) for sizes and operators of the models.

    Example:
        options:
          platforms:
            cpu:
              rate: 1 TFLOP/s
              bandwidth: 77 GB/s
              row_bandwidth: 30 GB/s
              call_time: 3 us
              memory: 256 GB
        parameters: {model: [rm1, rm3, din], platform: [cpu], batch: [1, 64, 4096]}

    Raises:
        SpecError: a platform or a model has an unknown, missing or invalid key.
    """

    user_options: ClassVar[Sequence[str]] = ("models.*",)

    platforms: Mapping[str, Mapping[str, Any]]
    models: Mapping[str, str | Mapping[str, Any]] | None = None
    model: str | None = None
    platform: str | None = None
    batch: float | None = None

    def __post_init__(self) -> None:
        given: object = self.platforms
        if not isinstance(given, Mapping) or not given:
            hint = f"as in {{cpu: {_EXAMPLE}}}"
            raise SpecError(f"platforms cannot be {given!r}", hint=hint, part=["platforms"])
        self._platforms = {name: _platform(name, one) for name, one in given.items()}
        own = {name: _sizes(name, one) for name, one in (self.models or {}).items()}
        self._models = {name: read_model(one, name) for name, one in {**MODELS, **own}.items()}
        if own:
            text = json.dumps(own, sort_keys=True, default=str)
            self.version = f"{self.version}-{hashlib.sha256(text.encode()).hexdigest()[:12]}"
        first = next(iter(self._platforms)) if len(self._platforms) == 1 else None
        words = {"model": one_of(self._models), "platform": one_of(self._platforms, first)}
        self._usual = {"model": "", "platform": first or ""}
        self.declare(Readings.of({**_NUMBERS, **words}, self))

    def evaluate(self, batch: Batch) -> Metrics:
        """Return the metrics of n designs, with a fault for each whose tables do not fit."""
        settled = self.readings.settled
        every = fix_columns(batch, {k: v for k, v in settled.items() if k in self._usual})
        parts = (
            (rows, self._evaluate_group(every.take(rows), *words))
            for words, rows in groups(every, self._usual)
        )
        return gather_parts(len(batch), self.provides, parts)

    def _evaluate_group(self, batch: Batch, model: str, platform: str) -> Metrics:
        found, on = self._models[model], self._platforms[platform]
        memory = _BYTES * found.numbers
        if memory > on.memory:
            reason = (
                f"{model} takes {memory / 1e9:.3g} GB, and {platform} has {on.memory / 1e9:.3g} GB"
            )
            return Metrics(columns={}, failures=infeasible_rows([reason] * len(batch)))
        samples = self.readings.column("batch", batch)
        times = _times_by_kind(found, on, samples)
        latency = np.sum(list(times.values()), axis=0)
        return Metrics(
            columns={
                "latency": latency,
                "throughput": samples / latency,
                "memory": np.full(len(batch), memory),
                "bottleneck": np.argmax(np.stack(list(times.values())), axis=0).astype(float),
                **{f"{kind}_time": one for kind, one in times.items()},
                **{f"{kind}_share": one / latency for kind, one in times.items()},
            }
        )


def _times_by_kind(
    model: RecommenderModel, on: RecommenderPlatform, samples: Floats
) -> dict[str, Floats]:
    """Return the time [s] of each kind of operator, and of the transfer, (n,) each."""
    times = {kind: np.zeros_like(samples) for kind in (*KINDS, _TRANSFER)}
    for one in model.operators:
        moved_s = _BYTES * (one.weights + one.moved * samples) / on.bandwidth
        moved_s = moved_s + _BYTES * one.gathered * samples / on.row_bandwidth
        computed_s = 2.0 * one.macs * samples / on.rate
        times[one.kind] += one.calls * on.call_time + np.maximum(moved_s, computed_s)
    if on.link:
        arriving = _BYTES * model.dense_inputs + _INDEX_BYTES * model.indices
        times[_TRANSFER] += on.call_time + arriving * samples / on.link
    return times


def _platform(name: str, figures: object) -> RecommenderPlatform:
    part = ["platforms", name]
    if not isinstance(figures, Mapping):
        raise SpecError(f"platform {name!r} is {figures!r}", hint=f"as in {_EXAMPLE}", part=part)
    odd = next((key for key in figures if key not in _FIGURES), None)
    if odd is not None:
        hint = nearest(str(odd), _FIGURES)
        raise SpecError(f"platform {name!r} has no key {odd!r}", hint=hint, part=part)
    lacking = next((key for key in _NEEDED if key not in figures), None)
    if lacking is not None:
        raise SpecError(f"platform {name!r} has no {lacking}", hint=f"as in {_EXAMPLE}", part=part)
    try:
        found = {key: amount(key, figures[key], _FIGURES[key]) for key in figures}
    except SpecError as error:
        problem = f"platform {name!r}: {error.problem}"
        raise SpecError(problem, hint=error.hint, part=part) from error
    zero = next((key for key in _NEEDED if not found[key] and key != "call_time"), None)
    if zero is not None:
        hint = f"more than 0 {_FIGURES[zero]}"
        raise SpecError(f"platform {name!r}: {zero} is 0", hint=hint, part=part)
    return RecommenderPlatform(**found)


def _sizes(name: str, given: object) -> Mapping[str, Any]:
    """Return the sizes of a model of the user: those of a file, or as they are."""
    if not isinstance(given, str):
        return given if isinstance(given, Mapping) else _refuse(name, given)
    path = Path(given)
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        hint = "a JSON file with arch_mlp_top and others"
        raise SpecError(f"there is no file {path}", hint=hint, part=["models", name]) from error
    except (OSError, ValueError, RecursionError) as error:
        problem = f"{path} cannot be read as JSON: {error}"
        raise SpecError(problem, hint="sizes of DLRM", part=["models", name]) from error
    return found if isinstance(found, Mapping) else _refuse(name, found)


def _refuse(name: str, given: object) -> Mapping[str, Any]:
    hint = "a JSON file, or {model_type: dlrm, arch_mlp_top: 256-64-1, ...}"
    raise SpecError(f"the model {name!r} cannot be {given!r}", hint=hint, part=["models", name])
