"""Evaluator ``clusters.serving``: a transformer served with continuous batching in steady state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import numpy as np

from dse.core.batch import Batch
from dse.core.metric import Metric, Metrics
from dse.core.values import Value
from dse.errors import SpecError
from dse.protocols import CalibrationResult, ModelError
from dse_evaluators.accelerators.devices.devices import DEVICES, Device
from dse_evaluators.alike import evaluate_distinct
from dse_evaluators.amounts import amount
from dse_evaluators.carbon.grids import GRIDS
from dse_evaluators.clusters.choices import Labels
from dse_evaluators.clusters.chosen_options import ChosenOptions
from dse_evaluators.clusters.own_system import (
    DeviceOption,
    SystemOption,
    label_of_system,
    system_edition,
)
from dse_evaluators.clusters.serving.bill import CARBON, COST, compute_emissions
from dse_evaluators.clusters.serving.engine import rate_of
from dse_evaluators.clusters.serving.fabric import (
    USUAL_DEVICE,
    ServingFabric,
    devices_to_serve,
    fabric_of,
)
from dse_evaluators.clusters.serving.model_accuracy import service_errors
from dse_evaluators.clusters.serving.plans_by_device import Fleet
from dse_evaluators.clusters.serving.run import ENERGIES, MEMORIES, TIMES, ServingScenario
from dse_evaluators.clusters.serving.serving_plan import (
    READINGS,
    SAME,
    SPELLINGS,
    check_expert_formats,
    plans,
)
from dse_evaluators.clusters.upkeep import EMBODIED_KG, Upkeep, price_among
from dse_evaluators.reading_table import Readings, one_of
from dse_evaluators.readings import number
from dse_evaluators.workloads.model_source import (
    ModelOption,
    edition_of_models,
    label_of_model,
    transformer_of,
)

_METRICS = (
    Metric(name="tpot", unit="s", goal="minimize"),
    *(Metric(name=f"{part}_time", unit="s", part_of="tpot") for part in TIMES),
    Metric(name="token_gap", unit="s", goal="minimize"),
    Metric(name="ttft", unit="s", goal="minimize"),
    Metric(name="throughput", unit="1/s", goal="maximize"),
    Metric(name="device_throughput", unit="1/s", goal="maximize"),
    Metric(name="energy_per_token", unit="J", goal="minimize"),
    *(Metric(name=f"{part}_energy", unit="J", part_of="energy_per_token") for part in ENERGIES),
    *CARBON,
    Metric(name="memory", unit="B", goal="minimize"),
    *(Metric(name=f"{part}_memory", unit="B", part_of="memory") for part in MEMORIES),
    Metric(name="headroom", unit="B", goal="maximize"),
    Metric(name="devices", goal="minimize"),
    Metric(name="running", goal="maximize"),
    Metric(name="reading", goal="minimize"),
    Metric(name="bottleneck", words=TIMES),
    Metric(name="extrapolated", words=("no", "yes")),
)


class Serving(
    ChosenOptions,
    reads=READINGS,
    provides=_METRICS,
    version="6",
    fits=("../../accelerators/devices/weight_only.fits.json",),
):
    """Latency, throughput, energy, memory, cost and carbon of a served model under full load.

    Every replica always serves ``batch`` sequences. ``tpot`` is the mean time between two tokens of
    a sequence, ``token_gap`` the longest such time, ``ttft`` the prefill time without
    queueing (queueing needs a simulation: ``clusters.serving-simulator``). ``running`` is the
    number of sequences in decode, ``reading`` the utilization by prefill. Throughputs count
    generated tokens. ``chunk`` prompt tokens join a decode step; with 0, prefill runs in separate
    steps. ``prefill_replicas`` run all prefill and send the KV cache to the others; if they are too
    slow, ``tpot`` still assumes full decode replicas. Their ``prefill_tp``, ``prefill_pp``,
    ``prefill_attention_dp`` and ``prefill_ep`` (0: as in decode) and ``prefill_weight_format``
    (``same``) are their own. ``memory`` is that of a decoding device.

    Each of a replica's ``pp`` stages has ``tp`` devices and at most one layer more than another.
    A model with experts may use ``attention_dp`` groups of ``tp`` devices that serve ``batch``
    sequences each and share the experts, which are split over ``ep`` groups of devices, also over
    several nodes. The attention groups run decode steps and prefill in lockstep, each on its own
    sequences. The busiest of the ``ep`` groups receives ``imbalance`` times the mean of tokens;
    they also hold second copies of ``redundant_experts`` of the experts.
    ``weight_bits`` and ``kv_bits``, where above 0, are the bits of a layer's weight and of a cached
    element in memory, including scales and indices: such weights are read in these bits and
    multiplied in ``weight_format``; kernels that dequantize narrower weights have separate
    constants. ``int4``, ``awq_int4``, ``gptq_int4`` and ``mxfp4`` are bf16 with their bits. Routed
    experts may have a format of their own, ``expert_format`` (``same``), and ``expert_bits``; with
    0 they have ``weight_bits`` where their format is the same.
    ``cost_per_token`` is the rent of all devices and present only where a price is known; carbon
    is that of their energy and their manufacture.

    Args:
        model: a name of ``workloads.transformer_configs``, the path of a Hugging Face
            ``config.json`` or of its folder, or ``{like: llama3-70b, layers: 40}``; a list of
            these makes it an input.
        device: a name of ``devices.csv`` with calibration and a known fabric, or ``{like: h200-sxm,
            memory: 96 GB}``; ``None`` makes it an input.
        system: cluster in place of ``device``, as of ``clusters.training``: its device, fabric,
            network and nodes; a list makes it an input.
        isl: tokens of a prompt (input sequence length).
        osl: tokens of an answer (output sequence length).
        memory_share: share of the device's memory that the server may use, 0 to 1.
        waiting: whether sequences that do not fit into memory wait; else the plan is infeasible.
        equal_lengths: whether all prompts and answers have these lengths exactly, as in load tests:
            where prefill has steps of its own, the sequences of a replica then start and end
            together, and ``ttft`` has the wait for the prompts before.
        draft_model: model, named as ``model``, that proposes ``draft_tokens`` per step, in the same
            formats.
        acceptance: probability that a draft token is accepted.
        imbalance: tokens of the busiest of the ``ep`` groups over the mean of the groups, in place
            of the input.
        redundant_experts: second copies of experts of a layer, in place of the input; the imbalance
            that remains with them is ``imbalance``.
        popularity: exponent of the power law by which the experts' popularity differs, such as
            1.01; with 0 all are equally popular. Fewer experts are then read in a step, and the
            busiest of the ``ep`` groups, which hold experts at random, receives more tokens.
        transfer_bandwidth: rate at which a device sends or receives the KV cache of a prompt that
            another replica computed [B/s], or with a unit; by default that of its links.
        price_per_hour: US dollars per device and hour, or a mapping by system or device; by default
            those of ``clusters/prices.csv``, which has the date and the source of each.
        grid: a name of ``carbon.grids``; ``None`` makes it an input.
        pue: power usage effectiveness: power of the building over that of its computers.
        lifetime: time over which the embodied carbon of a device is spread [s], or with a unit.
        embodied_kg: kg of carbon of making a device, with its share of the server.

    Limits:
        Not modelled: queues, varying lengths, shared prefixes, the host, routing to few nodes,
        expanding the latents of a prefix for each chunk. Not validated: pipelines, weights in fewer
        bits than their GEMMs, windows.

    Error:
        TPOT of 678 measured dense services, nothing fitted: median 6.8 %, mean 11.5 %, Spearman
        .956; of 635 services with experts: 11.9 %, 15.3 %, .951; of 688 of DeepSeek-R1, Kimi-K2.5
        (latent attention) and Qwen3.5-397B (recurrent states): 15.6 %, 21.0 %, .847; of 33 with
        separate prefill: 13.1 %, 21.9 %, .945; of 23 with ``attention_dp``: 22.7 %, 25.8 %, .844.
        Outliers: 25 % (SGLang, 8B), 81 % (vLLM, H200) and 107 % (DeepSeek-R1 in nvfp4). Details:
        ``docs/serving.md``.

    Example:
        options: {model: llama3-70b, device: h200-sxm}
        parameters: {tp: [4, 8], batch: [16, 64], weight_format: [bf16, fp8]}

    Raises:
        SpecError: a name is unknown, the device or its fabric was not measured, or a number is out
            of range.

    Source:
        The modules of this package cite the source of each equation. Constants are calibrated on
        single kernels (:mod:`dse_evaluators.accelerators.devices.calibrations`) and collectives;
        none was fitted to a measured serving system.
    """

    user_options: ClassVar[Sequence[str]] = ("model", "draft_model", "system")
    choosable: ClassVar[Labels] = {"model": label_of_model, "system": label_of_system}
    former_metrics: ClassVar[Mapping[str, str]] = {"first_token": "ttft"}

    model: ModelOption | Sequence[ModelOption]
    device: DeviceOption | None = USUAL_DEVICE
    system: SystemOption | Sequence[SystemOption] | None = None
    isl: int = 1024
    osl: int = 1024
    memory_share: float = 0.9
    waiting: bool = False
    equal_lengths: bool = False
    draft_model: ModelOption | None = None
    acceptance: float = 0.7
    imbalance: float | None = None
    redundant_experts: int | None = None
    popularity: float = 0.0
    transfer_bandwidth: float | str | None = None
    price_per_hour: float | Mapping[str, float] | None = None
    grid: str | None = "usa"
    pue: float = 1.1
    lifetime: float | str = "5 yr"
    embodied_kg: float = EMBODIED_KG

    def prepare(self) -> None:
        editions = (system_edition(self.system), system_edition(self.device))
        version = edition_of_models(type(self).version, self.model, self.draft_model)
        self.version = "-".join([version, *filter(None, editions)])
        for name, low, high in (("isl", 1, 2**31), ("osl", 2, 2**31)):
            number(low, high, whole=True)(name, getattr(self, name))
        for name in ("memory_share", "acceptance"):
            number(0, 1)(name, getattr(self, name))
        number(0, 3)("popularity", self.popularity)
        for name in ("imbalance", "redundant_experts", "popularity"):
            if getattr(self, name) and transformer_of(self.model).experts <= 1:
                raise SpecError(f"{name} of a model without experts", hint=f"leave {name} out")
        self._fleet = Fleet(
            services={
                name: self._service(sheet, fabric)
                for name, (sheet, fabric) in devices_to_serve(self.system, self.device).items()
            }
        )
        places = {"grid": one_of(GRIDS)}
        if self.device is None:
            places["device"] = one_of(self._fleet.services)
        alone = {"draft_tokens": 0.0} if self.draft_model is None else {}
        self.declare(Readings.of({**READINGS, **places}, self).fixed(alone))
        services = self._fleet.services.values()
        priced = any(service.upkeep.priced for service in services)
        metrics = (*_METRICS, COST) if priced else _METRICS
        self.provides = {metric.name: metric for metric in metrics}
        self.absent_metrics = {} if priced else {COST.name: next(iter(services)).upkeep.lacks_price}

    def check_values(self, values: Mapping[str, Sequence[Value]]) -> None:
        if self._choices is not None:
            super().check_values(values)
            return
        chunks = values.get("chunk", ())
        if self.equal_lengths and chunks and all(float(str(chunk)) > 0 for chunk in chunks):
            raise SpecError(
                "equal_lengths has no effect on chunks that join decode steps",
                hint="leave equal_lengths out, or let chunk be 0",
            )
        services = self._fleet.services
        devices = [] if self.device is not None else list(map(str, values.get("device", ())))
        for name in DEVICES.keys() & devices:
            fabric_of(name)  # raises if none was measured, and names a system with the device
        super().check_values(values)
        check_expert_formats(transformer_of(self.model), values)
        for name in devices:
            services[name].upkeep.dollars(np.zeros(1))  # raises if the device has no price
        if len(services) == 1:
            columns = ("weight_format", "prefill_weight_format", "expert_format")
            asked = {text for column in columns for text in values.get(column, ())}
            for text in asked - {SAME}:
                rate_of(next(iter(services.values())).device, SPELLINGS[text])

    def evaluate_options(self, batch: Batch) -> Metrics:
        """Return the metrics of n serving plans as arrays (n,) by name, with infeasible plans."""
        return evaluate_distinct(batch, self.reads | self.optional, self._evaluate_columns)

    def model_errors(self, batch: Batch) -> Mapping[str, Sequence[ModelError]]:
        """Return the relative model errors of n serving plans, by metric.

        The errors were found on services with measured latencies.
        """
        if self._choices is not None:
            return self._choices.model_errors(batch)
        plan = plans(batch, self._readings)
        marked = self._evaluate_columns(batch).columns["extrapolated"] > 0
        is_own = self.device is not None and self.device not in DEVICES
        unmeasured = (plan.pp > 1) | (plan.attention_dp > 1) | (plan.prefill_replicas > 0)
        outside = marked | is_own | unmeasured | (self.draft_model is not None)
        return service_errors(self.provides, batch, self._fleet.services, outside)

    @staticmethod
    def calibrate(file: Path, like: str) -> CalibrationResult:
        """Fit the constants of a device to measured times per output token.

        Args:
            file: CSV file with the columns model, tp, batch, isl, osl and tpot_ms, or results of
                ``vllm bench serve --save-result``.
            like: name of the device that was measured.

        Raises:
            SpecError: a row is invalid, or the rows do not determine the constants.
        """
        # SciPy is slow to import, and only this needs it
        from dse_evaluators.clusters.serving.serving_fit import calibrate_serving_rows

        return calibrate_serving_rows(file, like)

    def _evaluate_columns(self, batch: Batch) -> Metrics:
        plan = plans(batch, self._readings)
        found = self._fleet.run(batch, plan, compute_emissions(batch, self.grid, self.pue))
        return replace(found, columns={name: found.columns[name] for name in self.provides})

    def _service(self, sheet: Device, fabric: ServingFabric) -> ServingScenario:
        device, system = sheet.name, "" if fabric.system is None else fabric.system.name
        return ServingScenario(
            model=transformer_of(self.model),
            draft=None
            if self.draft_model is None
            else transformer_of(self.draft_model, "draft_model"),
            acceptance=self.acceptance,
            device=sheet,
            fabric=fabric,
            prompt=float(self.isl),
            answer=float(self.osl),
            memory_share=self.memory_share,
            waiting=self.waiting,
            in_step=self.equal_lengths,
            popularity=float(self.popularity),
            transfer_bytes_per_s=None
            if self.transfer_bandwidth is None
            else amount("transfer_bandwidth", self.transfer_bandwidth, "B/s", least=1.0),
            upkeep=Upkeep(
                device=device,
                system=system,
                price_per_hour=price_among(self.price_per_hour, system, device),
                grid=self.grid or "world",
                pue=self.pue,
                lifetime_s=amount("lifetime", self.lifetime, "s"),
                embodied_kg=self.embodied_kg,
            ),
        )
