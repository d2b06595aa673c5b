"""Evaluator ``clusters.serving-simulator``: latency percentiles and goodput of a served model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar, Literal, get_args

from dse.core.batch import Batch
from dse.core.metric import Metric, Metrics
from dse.core.values import Value
from dse.errors import SpecError
from dse_evaluators.accelerators.devices.devices import Device
from dse_evaluators.alike import evaluate_distinct, gather_parts, groups
from dse_evaluators.amounts import amount
from dse_evaluators.clusters.choices import Labels
from dse_evaluators.clusters.chosen_options import ChosenOptions
from dse_evaluators.clusters.own_system import (
    DeviceOption,
    SystemOption,
    label_of_system,
    system_edition,
)
from dse_evaluators.clusters.serving.bill import CARBON, COST
from dse_evaluators.clusters.serving.fabric import (
    USUAL_DEVICE,
    ServingFabric,
    devices_to_serve,
)
from dse_evaluators.clusters.serving.model_memory import CACHE_BYTES
from dse_evaluators.clusters.serving.serving_plan import SAME, SPELLINGS, check_expert_formats
from dse_evaluators.clusters.simulator.request_metrics import FORMER_METRICS, METRICS, LatencyLimits
from dse_evaluators.clusters.simulator.server_settings import POLICIES
from dse_evaluators.clusters.simulator.site import MEMORIES, Site
from dse_evaluators.clusters.simulator.traffic import Lengths, RequestTrace, draw_traffic, trace
from dse_evaluators.reading_table import ChoiceInput, NumberInput, Reading, Readings, one_of
from dse_evaluators.readings import number, word
from dse_evaluators.workloads.model_source import (
    ModelOption,
    edition_of_models,
    label_of_model,
    transformer_of,
)

Arrivals = Literal["poisson", "closed", "trace"]

_METRICS = (
    *METRICS,
    *CARBON,
    Metric(name="memory", unit="B", goal="minimize"),
    *(Metric(name=f"{part}_memory", unit="B", part_of="memory") for part in MEMORIES),
    Metric(name="devices", goal="minimize"),
    Metric(name="cache_tokens", goal="maximize"),
    Metric(name="extrapolated", words=("no", "yes")),
)

_READINGS: Mapping[str, Reading] = {
    "tp": NumberInput(1, 1e6, whole=True),
    "max_num_seqs": NumberInput(1, 1e6, whole=True),
    "budget": NumberInput(1, 1e7, default=8192.0, whole=True),
    "replicas": NumberInput(1, 1e4, default=1.0, whole=True),
    "memory_share": NumberInput(0.01, 1, default=0.9),
    "block_size": NumberInput(1, 4096, default=16.0, whole=True),
    "policy": one_of(POLICIES, "chunked"),
    "weight_format": one_of(map(str, SPELLINGS), "bf16"),
    "expert_format": one_of((SAME, *map(str, SPELLINGS)), SAME),
    **dict.fromkeys(("weight_bits", "expert_bits", "kv_bits"), NumberInput(0, 64, default=0.0)),
    "kv_format": ChoiceInput(dict(CACHE_BYTES.items()), "bf16"),
}

_LOADS: Mapping[str, dict[str, Reading]] = {
    "poisson": {"rate": NumberInput(1e-9, 1e9, "1/s")},
    "closed": {"concurrency": NumberInput(1, 1e6, whole=True)},
    "trace": {"speedup": NumberInput(1e-6, 1e6, default=1.0)},
}


class ServingSimulator(
    ChosenOptions,
    reads=_READINGS,
    provides=_METRICS,
    version="2",
    fits=("front_end.fits.json",),
):
    """Latencies of requests under a scheduler, simulated iteration by iteration.

    ``requests`` arrive at random (``poisson``: ``rate`` per second), from ``concurrency`` clients
    that each send the next request when the last is answered (``closed``), or from a file
    (``trace``, ``speedup`` times as fast). They are assigned to ``replicas`` round robin and served
    first come, first served. ``prefill_first`` stops decode while complete prompts are prefilled,
    ``mixed`` prefills complete prompts in decode iterations, ``chunked`` in chunks. ``budget`` is
    the tokens of an iteration, ``max_num_seqs`` the concurrent requests. If the KV cache is full,
    the newest request is evicted and recomputed.

    ``ttft``, ``tpot`` (time after the first token per further token) and ``total_time`` are
    means over requests, with quantiles; gaps are over tokens. ``goodput`` is requests per second
    within the limits, over the time up to the very last token: with few requests it includes
    ramp-up and drain.

    Args:
        model: a name of ``workloads.transformer_configs``, the path of a Hugging Face
            ``config.json`` or of its folder, or ``{like: llama3-70b, layers: 40}``; a list of
            these makes it an input.
        device: as of ``clusters.serving``; ``None`` makes it an input.
        system: cluster in place of ``device``, as of ``clusters.training``: its device and fabric;
            a list makes it an input.
        arrivals: ``poisson``, ``closed`` or ``trace``.
        requests: number of requests; of a trace, at most the first ``requests`` rows.
        seed: seed of arrival gaps and lengths, which are the same for all designs.
        isl: mean tokens of a prompt (input sequence length).
        osl: mean tokens of an answer (output sequence length).
        isl_spread: standard deviation of prompt lengths over their mean; lengths are lognormal.
        osl_spread: the same for answers.
        file: a CSV file with columns arrival [s], prompt and answer [tokens].
        overhead: seconds that each request spends outside of iterations.
        ttft_limit: limit of the time to first token [s]; limits are infinite by default.
        ttft_limit_per_token: addition to this limit per prompt token [s].
        tpot_limit: limit of the mean time per token after the first [s].
        pace_limit: limit of the moving average of a sequence's token gaps, at any time [s].
        pace_weight: weight of a new gap in this average; 0.1 averages about ten tokens.
        price_per_hour: US dollars per device and hour; by default that of ``clusters.upkeep``.
        grid: a name of ``carbon.grids``.
        pue: power usage effectiveness: power of the building over that of its computers.

    Inputs:
        rate, concurrency, speedup: one of them, depending on the option ``arrivals``.
        memory_share: share of a device's memory that the server may use.
        block_size: tokens of a cache block.
        weight_format, weight_bits, expert_format, expert_bits, kv_format, kv_bits: as of
            ``clusters.serving``.

    Limits:
        Not modelled: the network between replicas, tokenizers and the network in front of a server
        (``overhead`` is added to the first token of each request), shared prefixes, speculative
        decoding, imbalance between experts. Windows and recurrent states are reserved for
        ``max_num_seqs`` sequences of the longest request. A window applies to the mean context of
        an iteration.

    Error:
        Agrees with a step-by-step simulation and with Lindley's queue. TTFT of 678 measured
        services: median 43 %, mean 47 % with nothing fitted; 25 % and 35 % on 548 points with two
        constants fitted to 130 others. Details: ``docs/simulator.md``.

    Example:
        options: {model: llama3-8b, requests: 100}
        parameters: {tp: [1, 2], max_num_seqs: [16, 64], rate: [5, 20]}

    Raises:
        SpecError: a name is unknown, the device or its fabric was not measured, a number is out of
            range, or a trace cannot be read.

    Source:
        Yu et al.: Orca, 2022; Kwon et al.: PagedAttention (vLLM), 2023; Agrawal et al.:
        Sarathi-Serve, 2024; Holmes et al.: DeepSpeed-FastGen, 2024. The time of an iteration is
        that of ``clusters.serving``.
    """

    user_options: ClassVar[Sequence[str]] = ("model", "system")
    choosable: ClassVar[Labels] = {"model": label_of_model, "system": label_of_system}
    former_metrics: ClassVar[Mapping[str, str]] = FORMER_METRICS
    former_options: ClassVar[Mapping[str, str]] = {
        "first_token_limit": "ttft_limit",
        "first_token_limit_per_token": "ttft_limit_per_token",
    }

    model: ModelOption | Sequence[ModelOption]
    device: DeviceOption | None = USUAL_DEVICE
    system: SystemOption | Sequence[SystemOption] | None = None
    arrivals: Arrivals = "poisson"
    requests: int = 256
    seed: int = 0
    isl: int = 1024
    osl: int = 256
    isl_spread: float = 0.0
    osl_spread: float = 0.0
    file: str | None = None
    rate: float | str | None = None
    concurrency: int | None = None
    speedup: float | None = None
    tp: int | None = None
    replicas: int | None = None
    max_num_seqs: int | None = None
    budget: int | None = None
    memory_share: float | None = None
    block_size: int | None = None
    overhead: float | str = 0.0
    ttft_limit: float | str | None = None
    ttft_limit_per_token: float | str = 0.0
    tpot_limit: float | str | None = None
    pace_limit: float | str | None = None
    pace_weight: float = 0.1
    price_per_hour: float | None = None
    grid: str = "usa"
    pue: float = 1.1

    def prepare(self) -> None:
        _check(self)
        self._model = transformer_of(self.model)
        editions = (system_edition(self.system), system_edition(self.device))
        version = edition_of_models(type(self).version, self.model)
        self.version = "-".join([version, *filter(None, editions)])
        self._traffic = self._requests()
        self._sites = {
            name: self._site(sheet, fabric)
            for name, (sheet, fabric) in devices_to_serve(self.system, self.device).items()
        }
        table = {**_READINGS, **_LOADS[self.arrivals]}
        if self.device is None:
            table["device"] = one_of(self._sites)
        self.declare(Readings.of(table, self))
        priced = all(site.upkeep.priced for site in self._sites.values())
        metrics = (*_METRICS, COST) if priced else _METRICS
        self.provides = {metric.name: metric for metric in metrics}

    def check_options(self, values: Mapping[str, Sequence[Value]]) -> None:
        check_expert_formats(self._model, values)
        for name in values.get("device", ()) if self.device is None else self._sites:
            asked = (*values.get("weight_format", ()), *values.get("expert_format", ()))
            formats = [SPELLINGS[value] for value in asked if value != SAME]
            self._sites[str(name)].check_formats(formats)

    def evaluate_options(self, batch: Batch) -> Metrics:
        """Return the metrics of n designs as arrays (n,) by name, with faults if infeasible."""
        return evaluate_distinct(batch, self.reads | self.optional, self._evaluate_columns)

    def _evaluate_columns(self, batch: Batch) -> Metrics:
        """Return the metrics of n designs, simulated separately for each kind of device."""
        parts = (
            (rows, self._sites[device].run(part, self._readings.columns(part), self._traffic))
            for (device,), rows in groups(batch, {"device": next(iter(self._sites))})
            for part in (batch.take(rows),)
        )
        return gather_parts(len(batch), self.provides, parts)

    def _requests(self) -> RequestTrace:
        if self.arrivals == "trace":
            if self.file is None:
                raise SpecError("arrivals are a trace, but no file is given", hint="file: ...")
            return trace(Path(self.file), self.requests)
        prompt = Lengths(mean=self.isl, spread=self.isl_spread)
        answer = Lengths(mean=self.osl, spread=self.osl_spread)
        return draw_traffic(self.requests, prompt, answer, seed=self.seed)

    def _site(self, sheet: Device, fabric: ServingFabric) -> Site:
        limits = LatencyLimits(
            ttft_s=_limit("ttft_limit", self.ttft_limit),
            ttft_s_per_token=amount("ttft_limit_per_token", self.ttft_limit_per_token, "s"),
            tpot_s=_limit("tpot_limit", self.tpot_limit),
            pace_s=_limit("pace_limit", self.pace_limit),
        )
        return Site.of(
            self._model,
            sheet,
            fabric,
            limits=limits,
            weight=self.pace_weight if self.pace_limit is not None else 0.0,
            overhead_s=amount("overhead", self.overhead, "s"),
            price_per_hour=self.price_per_hour,
            grid=self.grid,
            pue=self.pue,
        )


def _check(options: ServingSimulator) -> None:
    """Raise SpecError if an option is out of range."""
    for name, most in (("requests", 10**6), ("isl", 2**31), ("osl", 2**31)):
        number(1, most, whole=True)(name, getattr(options, name))
    number(0, 2**31, whole=True)("seed", options.seed)
    for name in ("isl_spread", "osl_spread"):
        number(0, 10)(name, getattr(options, name))
    number(1e-6, 1)("pace_weight", options.pace_weight)
    word(*get_args(Arrivals))("arrivals", options.arrivals)


def _limit(name: str, given: float | str | None) -> float:
    return float("inf") if given is None else amount(name, given, "s")
