"""The evaluator ``clusters.apex``: parallel LLM serving plans simulated on a request trace."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import ClassVar

from dse.core.batch import Batch
from dse.core.metric import Metrics
from dse.errors import SpecError
from dse_evaluators.alike import row_by_row
from dse_evaluators.amounts import amount
from dse_evaluators.clusters.apex.apex_plan import (
    CACHE_BYTES,
    WEIGHT_BYTES,
    ApexPlan,
    Cluster,
    unmet,
)
from dse_evaluators.clusters.apex.machine import DvfsDevice
from dse_evaluators.clusters.apex.serving_metrics import METRICS, ServiceLimits, outcome
from dse_evaluators.clusters.apex.stage import (
    JUDGED_TEXTS,
    ApexFabric,
    PipelineStage,
    load_efficiency,
)
from dse_evaluators.clusters.apex.trace_simulation import run
from dse_evaluators.clusters.apex.traces import (
    RECORDED_PER_S,
    hash_trace,
    label_of_trace,
    recorded_rate,
    scale_arrivals,
    trace,
    workloads,
)
from dse_evaluators.clusters.choices import Labels
from dse_evaluators.clusters.chosen_options import ChosenOptions
from dse_evaluators.clusters.collectives import CollectiveConstants
from dse_evaluators.clusters.own_system import (
    DeviceOption,
    device_from,
    label_of_device,
    system_edition,
)
from dse_evaluators.reading_table import ChoiceInput, NumberInput, Reading, Readings, one_of
from dse_evaluators.readings import flag, number
from dse_evaluators.workloads.model_source import (
    ModelOption,
    edition_of_models,
    label_of_model,
    plain_transformer_of,
)

_FFN_MODES = ("tp", "ep")
_RATE = NumberInput(1e-6, 1e9, "1/s", default=RECORDED_PER_S)

_READINGS: Mapping[str, Reading] = {
    "ffn_mode": one_of(_FFN_MODES, "tp"),
    "weight_format": ChoiceInput(dict(WEIGHT_BYTES.items()), "fp16"),
    "kv_format": ChoiceInput(dict(CACHE_BYTES.items()), "fp16"),
    "devices": NumberInput(1, 1e6, whole=True),
    "dp": NumberInput(1, 1e6, whole=True),
    "pp": NumberInput(1, 1e6, whole=True),
    "attn_replicas": NumberInput(1, 1e6, default=1.0, whole=True),
    "ffn_replicas": NumberInput(1, 1e6, default=1.0, whole=True),
    "max_batch": NumberInput(1, 1e6, default=1e6, whole=True),
    "clock": NumberInput(0, 1e11, "Hz", default=0.0),
    "rate": _RATE,
    "link_bandwidth": NumberInput(0, 1e15, "B/s", default=0.0),
    "link_latency": NumberInput(0, 1.0, "s", default=25e-6),
}

_BETWEEN = CollectiveConstants(latency_s=30e-6, bytes_per_s=45e9, pipelining=0.0)
"""Link of each device to other nodes: assumed, a 400 Gb/s adapter."""


class Apex(
    ChosenOptions,
    reads=_READINGS,
    provides=METRICS,
    version="1",
    fits=("apex.fits.json",),
):
    """Makespan, latencies and energy of a parallel plan that serves a request trace.

    ``makespan`` is the time until the last request is answered; its breakdown is that of the
    data-parallel copy that ends last. ``tpot`` is the mean over all tokens after a request's first,
    ``tpot_counted`` over all tokens, as vLLM's counters define it, ``tpot_p95`` the 95th percentile
    of the requests' own means; ``ttft`` runs from a request's arrival at the server. ``attainment``
    is the share of requests within both limits. ``parameters`` are the weights of one device,
    ``capacity`` the tokens that a micro-batch of one attention replica may cache. A model with
    experts also reads ffn_mode: with ``ep``, devices hold whole experts.

    Args:
        model: a name of ``workloads.transformer_configs``, a config.json, ``{like: llama3-70b,
            layers: 40}``, or a list of these from which each design chooses; a space refers to a
            config.json by the name of its folder, unless ``{like: config.json, name: mine}``.
        workload: name of a shipped trace, or a CSV file with the columns arrival [s], prompt and
            answer [tokens], of which each design may choose one from a list.
        requests: number of the trace's first requests to serve; 0: all.
        device: a name of ``devices.csv`` whose clock and fabric are known, ``{like: h100-sxm,
            memory: 96 GB}``, a YAML file, or a list of these.
        node_devices: devices of a node.
        memory: bytes of one device; by default those of its data sheet.
        host: whether the fitted host time per step and per sequence is added.
        ttft_limit: longest TTFT [s] for ``attainment``.
        tpot_limit: longest TPOT [s] for ``attainment``.

    Inputs:
        devices: number of devices, all of which every plan uses.
        max_batch: sequences of a micro-batch on one attention replica.
        clock: clock of the devices; 0: the highest.
        rate: arrivals of requests; by default those of the trace.
        link_bandwidth: bandwidth of all links within a node; 0: the measured links.
        link_latency: latency of all links within a node, if ``link_bandwidth`` is not 0.

    Limits:
        Not modelled: embedding and LM head, expert imbalance, the delay of a request before its
        first step, swapping of preempted sequences to the host and back, chunked prefill, pipeline
        bubbles of micro-batches that differ within a step. Plans and formats unlike the fitted
        ones, and batches above 25, are ``extrapolated``; the dependence of power on the clock is
        assumed.

    Error:
        Counts of plans agree with APEX (32 counts). TPOT of vLLM 0.6 with Llama-3.1-70B on H100:
        mean 2.3 %, largest 10.6 % on 19 held-out points. TTFT is 28 % too short. Details:
        ``docs/apex.md``.

    Example:
        options: {requests: 48}
        parameters: {devices: [8], dp: [1, 2], pp: [1, 2], kv_format: [fp16, fp8]}

    Raises:
        SpecError: a name is unknown, or a number is out of range.

    Source:
        Lin et al.: APEX, 2024; the modules of this package cite the equations, ``apex.fits.json``
        holds the fitted constants.
    """

    user_options: ClassVar[Sequence[str]] = ("model", "workload", "device")
    choosable: ClassVar[Labels] = {
        "model": label_of_model,
        "workload": label_of_trace,
        "device": label_of_device,
    }

    model: ModelOption | Sequence[ModelOption] = "llama3-70b"
    workload: str | list[str] = "lmsys"
    requests: int = 0
    device: DeviceOption | Sequence[DeviceOption] = "h100-sxm"
    node_devices: int = 8
    memory: float | str | None = None
    host: bool = True
    ttft_limit: float | str = 1.0
    tpot_limit: float | str = 0.05
    devices: float | None = None
    attn_replicas: float | None = None
    ffn_replicas: float | None = None
    max_batch: float | None = None
    clock: float | str | None = None
    rate: float | str | None = None
    link_bandwidth: float | str | None = None
    link_latency: float | str | None = None

    def prepare(self) -> None:
        number(1, 1e6, whole=True)("node_devices", self.node_devices)
        number(0, 1e9, whole=True)("requests", self.requests)
        self._model = plain_transformer_of(self.model, "clusters.apex")
        self._machine = DvfsDevice.of(device_from(self.device))
        if not isinstance(self.workload, str):
            hint = f"a path, or {', '.join(workloads())}"
            raise SpecError(f"workload cannot be {self.workload!r}", hint=hint, part=["workload"])
        self._requests = trace(self.workload, self.requests)
        self._recorded_per_s = recorded_rate(self.workload, self._requests)
        version = edition_of_models(type(self).version, self.model)
        editions = system_edition(self.device), hash_trace(self.workload, self._requests)
        self.version = "-".join(filter(None, (version, *editions)))
        self._longest = max(one.prompt + one.answer for one in self._requests)
        memory = self._machine.device.dram_bytes if self.memory is None else self.memory
        self._memory_bytes = amount("memory", memory, "B")
        self._limits = ServiceLimits(
            amount("ttft_limit", self.ttft_limit, "s"), amount("tpot_limit", self.tpot_limit, "s")
        )
        flag("host", self.host)
        own = load_efficiency()
        self._efficiency = own if self.host else replace(own, step_s=0.0, sequence_s=0.0)
        clock = NumberInput(0, self._machine.highest_hz, "Hz", default=0.0)
        rate = _RATE._replace(default=self._recorded_per_s)
        readings = Readings.of({**_READINGS, "clock": clock, "rate": rate}, self)
        dense = {"ffn_mode": "tp"} if self._model.experts == 1 else {}
        self.declare(readings.fixed(dense))

    def evaluate_options(self, batch: Batch) -> Metrics:
        """Return the metrics of n serving plans, each simulated separately."""
        return row_by_row(self._readings.rows(batch), self.provides, self._row)

    def _row(self, inputs: Mapping[str, float]) -> dict[str, float] | str:
        """Return the metrics of one serving plan, or the reason why it is infeasible."""
        plan = ApexPlan(
            model=self._model,
            cluster=Cluster(int(inputs["devices"]), self.node_devices, self._memory_bytes),
            **{name: int(inputs[name]) for name in ("dp", "pp", "attn_replicas", "ffn_replicas")},
            by_experts=inputs["ffn_mode"] == _FFN_MODES.index("ep"),
            weight_bytes=inputs["weight_format"],
            cache_bytes=inputs["kv_format"],
        )
        broken = unmet(plan, self._longest)
        if broken is not None:
            return broken.text
        clock_hz = inputs["clock"] or self._machine.highest_hz
        stage = PipelineStage(
            plan=plan,
            rates=self._machine.rates(clock_hz),
            efficiency=self._efficiency,
            fabric=self._fabric(inputs),
        )
        ran = run(
            stage,
            scale_arrivals(self._requests, inputs["rate"] / self._recorded_per_s),
            int(inputs["max_batch"]),
        )
        judged = self._is_validated(plan, inputs, clock_hz) and ran.most_texts <= JUDGED_TEXTS
        return {
            **outcome(plan, ran, self._machine, clock_hz, self._limits),
            "extrapolated": 0.0 if judged else 1.0,
        }

    def _fabric(self, inputs: Mapping[str, float]) -> ApexFabric:
        own = CollectiveConstants(
            latency_s=inputs["link_latency"],
            bytes_per_s=max(inputs["link_bandwidth"], 1.0),
            pipelining=0.0,
        )
        return ApexFabric(
            within=self._machine.fabric,
            between=_BETWEEN,
            override=own if inputs["link_bandwidth"] > 0.0 else None,
            node_devices=self.node_devices,
        )

    def _is_validated(self, plan: ApexPlan, inputs: Mapping[str, float], clock_hz: float) -> bool:
        """Return whether the plan is within the range validated against measured LLM services."""
        shaped = plan.pp == plan.attn_replicas == plan.ffn_replicas == 1
        formats = plan.weight_bytes == plan.cache_bytes == 2.0
        alike = self.model == "llama3-70b" and self.device == "h100-sxm"
        own = self.host and inputs["link_bandwidth"] == 0.0 and clock_hz == self._machine.highest_hz
        return shaped and formats and alike and own and plan.cluster.devices <= 8
