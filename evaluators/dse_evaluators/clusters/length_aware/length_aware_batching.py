"""The evaluator ``clusters.length-aware-batching``: KV cache reserved by predicted lengths."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np

from dse.core.batch import Batch
from dse.core.metric import Metric, Metrics
from dse.core.values import Ints
from dse.errors import SpecError, nearest
from dse_evaluators.accelerators.devices.calibrations import has_calibration
from dse_evaluators.alike import row_by_row
from dse_evaluators.amounts import amount
from dse_evaluators.clusters.chips import ROWS
from dse_evaluators.clusters.choices import Labels
from dse_evaluators.clusters.chosen_options import ChosenOptions
from dse_evaluators.clusters.length_aware.pace import ServedModel
from dse_evaluators.clusters.length_aware.reserved_batching import (
    PARTS,
    Batching,
    Rules,
    Stream,
    Tally,
    edges,
    guess_lengths,
    texts_of,
)
from dse_evaluators.clusters.own_system import (
    DeviceOption,
    device_from,
    label_of_device,
    system_edition,
)
from dse_evaluators.reading_table import NumberInput, Reading, Readings, one_of
from dse_evaluators.readings import number
from dse_evaluators.workloads.model_source import (
    ModelOption,
    edition_of_models,
    label_of_model,
    plain_transformer_of,
)
from dse_evaluators.workloads.transformer_configs import PLAIN_TRANSFORMERS

POLICIES = ("worst-case", "guessed", "known")
"""Reservation for the longest sequence, for the predicted bucket, or for the true length."""

BOUNDARIES = ("linear", "quantile")
PREEMPTIONS = ("swap", "recompute")

_METRICS = (
    Metric(name="throughput", unit="1/s", goal="maximize"),
    Metric(name="device_throughput", unit="1/s", goal="maximize"),
    Metric(name="token_throughput", unit="1/s", goal="maximize"),
    Metric(name="text_time", unit="s", goal="minimize"),
    *(Metric(name=f"{part}_time", unit="s", part_of="text_time") for part in PARTS),
    Metric(name="slowest_step", unit="s", goal="minimize"),
    Metric(name="answer_p50", unit="s", goal="minimize"),
    Metric(name="answer_p99", unit="s", goal="minimize"),
    Metric(name="running", goal="maximize"),
    Metric(name="most_running", goal="maximize"),
    Metric(name="reserved_share"),
    Metric(name="used_share", goal="maximize"),
    Metric(name="preempted_share", goal="minimize"),
    Metric(name="room"),
    Metric(name="bottleneck", words=PARTS),
)
_READINGS: Mapping[str, Reading] = {
    "devices": NumberInput(1, 4096, default=1.0, whole=True),
    "buckets": NumberInput(1, 1000, default=10.0, whole=True),
    "accuracy": NumberInput(0.0, 1.0, default=0.98),
    "margin": NumberInput(0.0, 10.0, default=0.0),
    "batch": NumberInput(1, 1e6, default=1e6, whole=True),
    "cache_bits": NumberInput(1, 64, default=16.0),
    "policy": one_of(POLICIES),
    "model": one_of(PLAIN_TRANSFORMERS),
    "boundaries": one_of(BOUNDARIES, BOUNDARIES[0]),
    "preemption": one_of(PREEMPTIONS, PREEMPTIONS[0]),
}


class LengthAwareBatching(ChosenOptions, reads=_READINGS, provides=_METRICS, version="1"):
    """Stepwise simulation of an LLM server that reserves KV cache for each sequence.

    ``worst-case`` reserves the longest length for every sequence, ``guessed`` the bucket that a
    classifier of ``buckets`` predicts plus ``margin``, ``known`` the true length. A sequence that
    outgrows its reservation is preempted, waits, and returns with twice the reservation.
    ``text_time`` is the server's time for one sequence of mean length, ``throughput`` its inverse;
    ``answer_p99`` is the time from the first token to the last, preemptions included. All designs
    see the same sequences.

    Args:
        model: a name of ``workloads.transformer_configs``, a config.json, ``{like: opt-30b, layers:
            40}``, or a list of these from which each design chooses; by default the designs choose
            among the names.
        device: a name of ``devices.csv`` with a measured bf16 calibration, ``{like: a100-sxm-80gb,
            memory: 40 GB}``, a YAML file of ``dse calibrate devices``, or a list of these.
        median, spread: of the lognormal output tokens of a sequence; they are assumed.
        longest: most output tokens; longer sequences are cut.
        prompt: tokens of each prompt.
        texts: number of sequences of the stream.
        look_ahead: waiting sequences, of which the largest that fits is admitted first.
        launch: overhead of a step [s].
        kept_share: share of a device's memory for weights and KV cache.
        host_bandwidth: bandwidth between a device and its host [B/s].

    Inputs:
        devices: number of devices that share a model evenly.
        accuracy: share of correct predictions; wrong predictions are one bucket off.
        margin: share by which a reservation exceeds the predicted bucket.
        batch: most sequences at once.
        cache_bits: bits of a cached number.

    Limits:
        Not modelled: communication between devices, arrivals (a sequence is always waiting), the
        time of predictions, and paging (Kwon et al., 2023), which reserves nothing.

    Error:
        Agrees with a step-by-step simulation. The best gain over the worst case is 5.5 (published:
        up to 6.49) under an assumed distribution of lengths.

    Example:
        options: {model: opt-30b, texts: 50}
        parameters: {policy: [worst-case, guessed, known], devices: [1, 2], batch: [16]}

    Source:
        Jin et al.: S3: Increasing GPU Utilization during Generative Inference for Higher
        Throughput, NeurIPS 2023.

    Raises:
        SpecError: an option is out of range, or the device has no measured bf16 calibration.
    """

    user_options: ClassVar[Sequence[str]] = ("model", "device")
    choosable: ClassVar[Labels] = {"model": label_of_model, "device": label_of_device}

    device: DeviceOption | Sequence[DeviceOption] = "a100-sxm-80gb"
    median: float = 58.0
    spread: float = 1.0
    longest: int = 2000
    prompt: int = 48
    texts: int = 2000
    look_ahead: int = 256
    launch: float | str = 2e-3
    kept_share: float = 0.95
    host_bandwidth: float | str = 25e9
    seed: int = 0
    model: ModelOption | Sequence[ModelOption] | None = None
    devices: int | None = None
    cache_bits: float | None = None
    accuracy: float | None = None

    def prepare(self) -> None:
        self._device = device_from(self.device)
        name = self._device.name
        if (name, "bf16") not in ROWS and not has_calibration(self._device, "bf16"):
            measured = [name for name, form in ROWS if form == "bf16"]
            raise SpecError(
                f"{name} has no measured bf16 calibration", hint=nearest(name, measured)
            )
        version = edition_of_models(type(self).version, self.model)
        self.version = "-".join(filter(None, (version, system_edition(self.device))))
        for name, high in (("longest", 1e6), ("texts", 1e6), ("look_ahead", 1e6)):
            number(1, high, whole=True)(name, getattr(self, name))
        number(0, 1e6, whole=True)("prompt", self.prompt)
        number(0, 2**62, whole=True)("seed", self.seed)
        number(1e-3, 1e6)("median", self.median)
        number(0.0, 10.0)("spread", self.spread)
        number(1e-3, 1.0)("kept_share", self.kept_share)
        self._launch_s = amount("launch", self.launch, "s")
        self._host = amount("host_bandwidth", self.host_bandwidth, "B/s")
        self._stream = Stream(
            count=self.texts,
            median=self.median,
            spread=self.spread,
            longest=self.longest,
            seed=self.seed,
        )
        self._models = dict(PLAIN_TRANSFORMERS)
        given = {name: value for name, value in vars(self).items() if name in _READINGS}
        if self.model is not None:
            model = plain_transformer_of(self.model, "clusters.length-aware-batching")
            self._models = {model.name: model}
            given["model"] = model.name
        readings = Readings({**_READINGS, "model": one_of(self._models)})
        self.declare(readings.fixed({name: one for name, one in given.items() if one is not None}))

    def evaluate_options(self, batch: Batch) -> Metrics:
        """Return the throughput, latency and memory metrics of n servers."""
        return row_by_row(self._readings.rows(batch), self.provides, self._one)

    def _one(self, inputs: Mapping[str, float]) -> dict[str, float] | str:
        """Return the metrics of a design, or the reason why it is infeasible."""
        served = self._served_model(inputs)
        if served.room < self.longest + self.prompt:
            needs = served.weight_bytes + (self.longest + self.prompt) * served.token_bytes
            short = needs - served.memory_bytes
            return (
                f"weights and longest sequence take {needs:.6g} B of {served.memory_bytes:.6g} B: "
                f"{short:.6g} B short"
            )
        pace, swaps = served.pace, inputs["preemption"] == PREEMPTIONS.index("swap")
        rules = Rules(
            pace=pace,
            room=served.room,
            most_running=int(inputs["batch"]),
            prompt=self.prompt,
            longest=self.longest,
            look_ahead=self.look_ahead,
            moved_s=served.moved_s if swaps else pace.text_s,
        )
        tokens = texts_of(self._stream).tokens
        run = Batching(rules, tokens.tolist(), self._compute_reservations(inputs).tolist())
        return _metrics(run, run.run(self.texts), served, float(tokens.mean()))

    def _served_model(self, inputs: Mapping[str, float]) -> ServedModel:
        return ServedModel(
            model=tuple(self._models.values())[int(inputs["model"])],
            device=self._device,
            devices=int(inputs["devices"]),
            cache_bits=inputs["cache_bits"],
            launch_s=self._launch_s,
            kept_share=self.kept_share,
            host_bytes_per_s=self._host,
        )

    def _compute_reservations(self, inputs: Mapping[str, float]) -> Ints:
        """Return the initial reservation of each sequence, in tokens."""
        texts = texts_of(self._stream)
        policy = POLICIES[int(inputs["policy"])]
        if policy == "known":
            return texts.tokens
        if policy == "worst-case":
            return np.full_like(texts.tokens, self.longest)
        most = edges(int(inputs["buckets"]), BOUNDARIES[int(inputs["boundaries"])], self._stream)
        predicted = guess_lengths(texts, most, inputs["accuracy"])
        wide = np.ceil(predicted * (1.0 + inputs["margin"])).astype(np.int64)
        return np.minimum(wide, self.longest)


def _metrics(
    run: Batching, tally: Tally, served: ServedModel, mean_tokens: float
) -> dict[str, float]:
    each = mean_tokens / tally.written
    parts = {f"{part}_time": each * float(getattr(tally, f"{part}_s")) for part in PARTS}
    text_s = sum(parts.values())
    held = float(served.room * tally.steps)
    return {
        **parts,
        "text_time": text_s,
        "throughput": 1.0 / text_s,
        "device_throughput": 1.0 / text_s / served.devices,
        "token_throughput": mean_tokens / text_s,
        "slowest_step": run.slowest_s,
        "answer_p50": float(np.quantile(run.answers_s, 0.5)),
        "answer_p99": float(np.quantile(run.answers_s, 0.99)),
        "running": tally.written / tally.steps,
        "most_running": float(run.most),
        "reserved_share": tally.reserved / held,
        "used_share": tally.used / held,
        "preempted_share": tally.preempted / tally.finished,
        "room": float(served.room),
        "bottleneck": float(np.argmax(list(parts.values()))),
    }
