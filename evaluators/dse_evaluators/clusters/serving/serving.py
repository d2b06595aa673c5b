"""The evaluator ``clusters.serving``: a transformer that answers many at once, in steady state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from dse.core.batch import Batch
from dse.core.metric import Kind, Metric, Metrics
from dse.core.values import Value
from dse.errors import SpecError, nearest
from dse_evaluators.accelerators.devices.devices import device_of
from dse_evaluators.clusters.serving.engine import rate_of
from dse_evaluators.clusters.serving.fabric import fabric_of
from dse_evaluators.clusters.serving.memory import CACHE_BYTES
from dse_evaluators.clusters.serving.plan import KNOBS, impossible, plans, too_large
from dse_evaluators.clusters.serving.run import ENERGIES, MEMORIES, TIMES, Formats, Service
from dse_evaluators.readings import check_readings, number
from dse_evaluators.workloads.transformer_configs import TRANSFORMERS, Transformer

_METRICS = (
    Metric(name="tpot", unit="s", goal="minimize"),
    *(Metric(name=f"{part}_time", unit="s", part_of="tpot") for part in TIMES),
    Metric(name="token_gap", unit="s", goal="minimize"),
    Metric(name="first_token", unit="s", goal="minimize"),
    Metric(name="throughput", unit="1/s", goal="maximize"),
    Metric(name="device_throughput", unit="1/s", goal="maximize"),
    Metric(name="energy_per_token", unit="J", goal="minimize"),
    *(Metric(name=f"{part}_energy", unit="J", part_of="energy_per_token") for part in ENERGIES),
    Metric(name="memory", unit="B", goal="minimize"),
    *(Metric(name=f"{part}_memory", unit="B", part_of="memory") for part in MEMORIES),
    Metric(name="headroom", unit="B", goal="maximize"),
    Metric(name="devices", goal="minimize"),
    Metric(name="running", goal="maximize"),
    Metric(name="reading", goal="minimize"),
    Metric(name="bottleneck", words=TIMES),
    Metric(name="extrapolated", words=("no", "yes")),
)


@dataclass(kw_only=True, eq=False)
class Serving:
    """Time, rate, energy and memory of a served model under full load.

    Every replica has ``batch`` texts at once, always. ``tpot`` is the mean time between two tokens
    of a text, ``token_gap`` the longest step that one waits for, ``first_token`` the time to read a
    prompt without a queue: how long that is needs a simulation. ``running`` texts are in a step of
    writing; ``reading`` is the share of the time in which prompts are read. Throughputs are of
    written tokens. ``chunk`` is how many tokens of a prompt join a step of writing, with 0 prompts
    have steps of their own; ``prefill_replicas``, of ``prefill_tp`` devices each, read all prompts
    for the others, and where they are too few for them, ``tpot`` is that of full places all the
    same. ``memory`` is of a device that writes.

    Not modelled: experts, pipelines, queues, lengths that vary, shared prefixes, the host.

    Args:
        model: a name of ``workloads.transformer_configs``.
        device: a name of ``devices.csv`` that was measured, and whose fabric is known.
        isl: tokens of a prompt.
        osl: tokens of an answer.
        memory_share: of the device's memory, what the server may take.
        waiting: texts that find no room wait for it; else such a plan is infeasible.
        draft_model: who guesses ``draft_tokens`` at a time, in the same formats.
        acceptance: how probably a guess is right.

    Raises:
        SpecError: a name is unknown, or the device or its fabric was not measured.

    Source:
        The modules behind it tell which equation is whose. Constants are of single kernels
        (:mod:`dse_evaluators.accelerators.devices.calibrations`) and collectives; no measured
        service was looked at to choose them.
    """

    model: str
    device: str = "h100-sxm"
    isl: int = 1024
    osl: int = 1024
    memory_share: float = 0.9
    waiting: bool = False
    draft_model: str | None = None
    acceptance: float = 0.7
    reads: frozenset[str] = field(init=False)
    optional: frozenset[str] = field(init=False)
    units: Mapping[str, str] = field(default_factory=dict, init=False)
    provides: Mapping[str, Metric] = field(init=False)
    kind: Kind = field(init=False, default="modelled")
    version: str = field(init=False, default="1")

    def __post_init__(self) -> None:
        for name, low, high in (("isl", 1, 2**31), ("osl", 2, 2**31)):
            number(low, high, whole=True)(name, getattr(self, name))
        for name in ("memory_share", "acceptance"):
            number(0, 1)(name, getattr(self, name))
        self._service = Service(
            model=_model(self.model),
            draft=None if self.draft_model is None else _model(self.draft_model),
            acceptance=self.acceptance,
            device=device_of(self.device),
            fabric=fabric_of(self.device),
            prompt=float(self.isl),
            answer=float(self.osl),
            memory_share=self.memory_share,
            waiting=self.waiting,
        )
        needed = frozenset(name for name, knob in KNOBS.items() if knob.usual is None)
        lacking = frozenset({"draft_tokens"} if self.draft_model is None else ())
        self.reads, self.optional = needed, frozenset(KNOBS) - needed - lacking
        self.provides = {metric.name: metric for metric in _METRICS}

    def check_values(self, values: Mapping[str, Sequence[Value]]) -> None:
        """Nothing, if it can be run on all of these values of its readings.

        Raises:
            SpecError: it cannot.
        """
        check_readings(values, {name: knob.check for name, knob in KNOBS.items()})
        for text in values.get("weight_format", ()):
            rate_of(self._service.device, str(text))

    def evaluate(self, batch: Batch) -> Metrics:
        """The metrics of n plans."""
        among = batch.distinct(self.reads | self.optional)
        some = batch.take(among.rows)
        plan = plans(some)
        if self.draft_model is None:
            plan = replace(plan, draft_tokens=np.zeros_like(plan.tp))
        faults = impossible(plan, self._service.model)
        possible = np.ones(len(some), dtype=bool)
        possible[list(faults)] = False
        columns, needed = self._service.run(plan, _formats(some))
        faults |= too_large(needed, self._service.room, possible)
        return Metrics(
            columns={name: among.spread(values) for name, values in columns.items()},
            faults=among.spread_rows(faults),
        )


def _formats(batch: Batch) -> Formats:
    names = tuple(dict.fromkeys(batch.get("weight_format", "bf16").tolist()))
    places: dict[Value, float] = {name: float(place) for place, name in enumerate(names)}
    cached: dict[Value, float] = dict(CACHE_BYTES.items())
    return Formats(
        names=names,
        place=batch.lookup("weight_format", places, places.get("bf16", 0.0)).astype(np.intp),
        cache_bytes=batch.lookup("kv_format", cached, cached["bf16"]),
    )


def _model(name: str) -> Transformer:
    if name not in TRANSFORMERS:
        raise SpecError(f"model cannot be {name!r}", hint=nearest(name, TRANSFORMERS))
    return TRANSFORMERS[name]
