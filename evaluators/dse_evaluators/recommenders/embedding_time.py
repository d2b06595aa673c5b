"""The evaluator ``recommenders.embedding-time``: vectors looked up or computed, on a device."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import ClassVar

import numpy as np

from dse.core.batch import Batch
from dse.core.metric import Failure, Metric, Metrics
from dse.core.values import Floats, Value
from dse.errors import SpecError
from dse_evaluators.accelerators.devices.calibrations import calibration_on
from dse_evaluators.accelerators.devices.platforms import Platforms, devices_of, hash_device_files
from dse_evaluators.accelerators.devices.recipes import RECIPES
from dse_evaluators.accelerators.devices.roofline import KernelWork, RooflineConstants, times
from dse_evaluators.alike import fix_columns, gather_parts, groups, infeasible, infeasible_rows
from dse_evaluators.declared_evaluator import DeclaredEvaluator
from dse_evaluators.reading_table import CheckedInput, NumberInput, Reading, one_of
from dse_evaluators.readings import look_up_row
from dse_evaluators.recommenders.representations import (
    DESIGN,
    HASH_BYTES,
    HASHED,
    KINDS,
)

_TABLE, _HASH = KINDS.index("table"), KINDS.index("hash")
_WORDS = {"device": "", "format": "fp16"}

_NUMBERS: Mapping[str, Reading] = {
    **DESIGN,
    "features": NumberInput(1, 1 << 16, default=26, whole=True),
    "rows": NumberInput(1, 1e13, default=33_762_577, whole=True),
    "batch": NumberInput(1, 1 << 24, default=1, whole=True),
    "inflation": NumberInput(1, 64, default=8),
}
_METRICS = (
    Metric(name="latency", unit="s", goal="minimize"),
    Metric(name="lookup_time", unit="s", goal="minimize", part_of="latency"),
    Metric(name="hash_time", unit="s", goal="minimize", part_of="latency"),
    Metric(name="throughput", unit="1/s", goal="maximize"),
    Metric(name="memory", unit="B", goal="minimize"),
    Metric(name="extrapolated", words=("no", "yes")),
)


class EmbeddingTime(DeclaredEvaluator, reads=_NUMBERS, provides=_METRICS, version="1"):
    """Time and memory of a recommender's embedding vectors, from tables or hashed MLPs.

    Times are of one batch. A sample has a value of each categorical feature. A table is read at
    random rows, limited by the bandwidth of the memory; the MLPs of all features are matrix
    products, under the roofline of ``accelerators.gpu``. Tables and weights that do not fit into
    the device's memory are infeasible. ``extrapolated`` is 1 if the device was not measured in the
    format.

    Args:
        knobs: inputs that all designs share, such as ``{features: 26, dim: 16}``.
        platforms: figures of devices of yours, or paths of their files, by name, such as ``{cpu:
            {like: t4, memory: 256 GB, bandwidth: 77 GB/s, fp32: 1.5 TFLOP/s}}``: see
            :mod:`.platforms`.

    Inputs:
        representation: ``table``, ``hash``, or ``hybrid``, which has both.
        dim: numbers of a row of a table, and outputs of an MLP.
        hashes: hash functions of a value; not with ``table``.
        width: width of the hidden layers of an MLP; not with ``table``.
        layers: hidden layers of an MLP; not with ``table``.
        features: number of categorical features; the default is Criteo's number.
        rows: values of all features together; the default is Criteo Kaggle's number.
        batch: samples of a batch.
        inflation: bytes that are moved for a byte of a row, since rows are read at random.
        device: a device of ``devices.csv`` or ``platforms``.
        format: a format of ``RECIPES``, of tables and MLPs.

    Limits:
        Vectors alone: no other layers, no caches, several devices or queues. Hash functions take no
        time. The default of ``inflation`` is assumed.

    Error:
        Not validated on recommenders. The products have the errors of ``accelerators.gpu`` on
        devices that were measured; constants of others are medians over those.

    Source:
        Hsia et al.: MP-Rec, ASPLOS 2023; Kang et al., KDD 2021; :mod:`.roofline`.

    Example:
        options: {knobs: {device: t4, dim: 16, format: fp16}}
        parameters: {representation: [table, hash, hybrid], batch: [1, 4096]}

    Raises:
        SpecError: an option has an invalid value.
    """

    user_options: ClassVar[tuple[str, ...]] = ("platforms.*",)

    knobs: Mapping[str, Value] = field(default_factory=dict)
    platforms: Platforms | None = None

    def __post_init__(self) -> None:
        self._devices = devices_of(self.platforms or {})
        edition = hash_device_files((self.platforms or {}).values())
        self.version = "-".join(filter(None, (self.version, edition)))
        super().__post_init__()
        words: Mapping[str, Reading] = {
            "device": CheckedInput(self._check_device),
            "format": one_of(RECIPES, _WORDS["format"]),
        }
        self.declare(type(self.readings)({**_NUMBERS, **words}).fixed(self.knobs))
        settled = self.readings.settled
        self._fixed = {name: settled[name] for name in _WORDS if name in settled}

    def evaluate(self, batch: Batch) -> Metrics:
        """Return the metrics of n designs, (n,); tables that exceed the memory are infeasible."""
        every = fix_columns(batch, self._fixed)
        parts = (
            (rows, self._evaluate_group(every.take(rows), *words))
            for words, rows in groups(every, _WORDS)
        )
        return gather_parts(len(batch), self.provides, parts)

    def _evaluate_group(self, batch: Batch, name: str, number: str) -> Metrics:
        device, recipe = look_up_row("device", name, self._devices), RECIPES[number]
        if recipe.rate not in device.flops_per_s:
            reasons = [f"{name} has no units for {number}"] * len(batch)
            return Metrics(columns={}, failures=infeasible_rows(reasons))
        found = calibration_on(device, number)
        inputs = {key: self.readings.column(key, batch) for key in _NUMBERS}
        has_table = inputs["representation"] != _HASH
        has_hash = inputs["representation"] != _TABLE
        products = times(
            _count_work(inputs, number),
            found.constants,
            flops_per_s=device.flops_per_s[recipe.rate],
            bytes_per_s=device.dram_bytes_per_s,
        ).total_s
        repeats = np.stack([np.ones(len(batch)), inputs["layers"] - 1, np.ones(len(batch))])
        hash_s = np.where(has_hash, (products * repeats).sum(axis=0), 0.0)
        row_bytes = recipe.operand_bytes * inputs["dim"]
        looked_up = inputs["batch"] * inputs["features"] * row_bytes
        lookup_s = _read_s(
            looked_up * inputs["inflation"], found.constants, device.dram_bytes_per_s
        )
        lookup_s = np.where(has_table, lookup_s, 0.0)
        memory = np.where(has_table, inputs["rows"] * row_bytes, 0.0)
        memory += np.where(has_hash, _count_hash_bytes(inputs, recipe.operand_bytes), 0.0)
        room = device.dram_bytes
        idle = {
            int(row): Failure(kind="infeasible", reason=f"{each} has no effect with a table")
            for each in HASHED
            for row in np.flatnonzero(~has_hash & ~batch.absent(each))
        }
        crowded = infeasible(
            memory > room,
            lambda row: (
                f"tables and weights of {memory[row] / 1e9:.3g} GB are larger than the memory of "
                f"{name}, {room / 1e9:.3g} GB"
            ),
        )
        latency = lookup_s + hash_s
        return Metrics(
            columns={
                "latency": latency,
                "lookup_time": lookup_s,
                "hash_time": hash_s,
                "throughput": inputs["batch"] / latency,
                "memory": memory,
                "extrapolated": np.full(len(batch), float(not found.own)),
            },
            failures=crowded | idle,
        )

    def _check_device(self, name: str, value: Value) -> None:
        if not look_up_row(name, value, self._devices).flops_per_s:
            raise SpecError(f"{value} has no listed rate", hint="give it one in platforms")


def _count_work(inputs: Mapping[str, Floats], number: str) -> KernelWork:
    """Return the work of the first, of a hidden and of the last layer of all features, (3, n)."""
    recipe = RECIPES[number]
    hashes, width, dim = inputs["hashes"], inputs["width"], inputs["dim"]
    chain, filters = np.stack([hashes, width, width]), np.stack([width, width, dim])
    vectors, features = inputs["batch"] * inputs["features"], inputs["features"]
    lefts, results = vectors * chain, vectors * filters
    rights = features * chain * filters
    return KernelWork(
        flops=2.0 * chain * results,
        moved_bytes=recipe.operand_bytes * (lefts + rights) + recipe.result_bytes * results,
        chain=chain,
        converted=lefts * recipe.converts,
    )


def _count_hash_bytes(inputs: Mapping[str, Floats], number_bytes: float) -> Floats:
    """Return the bytes of the MLPs with their biases, and of the hash functions, (n,)."""
    hashes, width, dim = inputs["hashes"], inputs["width"], inputs["dim"]
    hidden = (hashes + 1) * width + (inputs["layers"] - 1) * (width + 1) * width
    numbers = hidden + (width + 1) * dim
    return inputs["features"] * (number_bytes * numbers + HASH_BYTES * hashes)


def _read_s(moved: Floats, constants: RooflineConstants, bytes_per_s: float) -> Floats:
    return moved / (constants.memory_share * bytes_per_s) + constants.launch_s
