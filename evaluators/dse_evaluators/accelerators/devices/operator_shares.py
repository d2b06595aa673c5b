"""Evaluator ``accelerators.operator-shares``: where the time of a network goes, by operator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import ClassVar

import numpy as np

from dse.core.batch import Batch
from dse.core.metric import Metric, Metrics
from dse.core.values import Floats, Value
from dse.errors import SpecError
from dse_evaluators.accelerators.devices.calibrations import calibration_on
from dse_evaluators.accelerators.devices.operators import (
    CLASSES,
    OperatorDevice,
    OperatorRun,
    Operators,
    operators_of,
    times_of,
)
from dse_evaluators.accelerators.devices.platforms import Platforms, devices_of, hash_device_files
from dse_evaluators.accelerators.devices.recipes import RECIPES
from dse_evaluators.alike import fix_columns, gather_parts, groups, infeasible_rows
from dse_evaluators.declared_evaluator import DeclaredEvaluator
from dse_evaluators.reading_table import CheckedInput, NumberInput, Reading, Readings, one_of
from dse_evaluators.readings import check_with_lookup, look_up_row
from dse_evaluators.workloads.catalogue import table_of
from dse_evaluators.workloads.own.own_workload import declare_workload

_PLAIN, _FUSED = _KERNELS = ("plain", "fused")

_METRICS = (
    Metric(name="latency", unit="s", goal="minimize"),
    *(Metric(name=f"{name}_time", unit="s", part_of="latency") for name in CLASSES),
    Metric(name="throughput", unit="1/s", goal="maximize"),
    *(Metric(name=f"{name}_share") for name in CLASSES),
    Metric(name="temporal_share"),
    Metric(name="fused_gain"),
    Metric(name="longest_sequence"),
    Metric(name="shortest_sequence"),
    Metric(name="bottleneck", words=CLASSES),
    Metric(name="extrapolated", words=("no", "yes")),
)

_NUMBERS: Mapping[str, Reading] = {
    "batch": NumberInput(1, 1 << 24, default=1.0),
    "convolution_passes": NumberInput(0, 100, default=3.0),
    "linear_passes": NumberInput(0, 100, default=1.0),
    "temporal_bandwidth": NumberInput(1e-3, 1, default=1.0),
}
_WORDS = {"workload": "", "device": "", "format": "fp16", "attention": _FUSED}


class OperatorShares(DeclaredEvaluator, reads=_NUMBERS, provides=_METRICS, version="1"):
    """Time of a network on one device by class of operator, with plain or fused attention.

    The classes are convolutions, linear layers, attention (its two products and the softmax), and
    elementwise operators (norms, activations, additions). A 1 x 1 convolution of an image is a
    convolution. Plain attention writes its scores to memory, and a softmax reads and writes them;
    fused attention keeps them on the chip. ``fused_gain`` is the latency with plain attention over
    that with fused attention. ``temporal_share`` is that of attention along the frames of a video
    in the time of all attention. Sequences are the rows of queries of an attention.

    Args:
        workload: a workload of ``workloads.catalogue`` such as ``sd-unet:latent=64``, or a network
            of yours: the ``config.json`` of a U-Net or DiT of diffusers, ``net.onnx``, or
            ``{python: net.py:make, input: [3, 32, 32]}``; see ``docs/workloads.md``.
        platforms: figures of devices of yours, or paths of their files, by name, such as ``{mine:
            {like: a100-sxm-80gb, bandwidth: 1.5 TB/s}}``: see :mod:`.platforms`.

    Inputs:
        device: a device of ``devices.csv`` or ``platforms``.
        format: a format of ``RECIPES``.
        attention: ``plain``, or ``fused`` as in FlashAttention.
        batch: inputs of a run; with guidance, a picture takes two.
        convolution_passes: elementwise kernels for each convolution, of which each reads and writes
            its result. The default counts a group norm, which reads twice, an activation, and half
            an addition.
        linear_passes: the same for each linear layer. The default is what the norms, the activation
            and the additions of a transformer block come to.
        temporal_bandwidth: share of the reached bandwidth that attention along frames reaches,
            because the frames of a pixel lie apart in memory.

    Limits:
        Kernels run one after another. The memory of the device is not checked. Only products
        without weights that directly follow one another are recognized as attention. Layers along
        frames are those with ``temporal`` in their names, as the names of built-in models have it.

    Error:
        The products have the errors of ``accelerators.gpu`` (median 8 to 13 % on measured GEMMs).
        Elementwise and fused kernels were not measured: they reach the bandwidth, and the share of
        the peak rate, that were fitted to GEMMs.

    Source:
        Golden et al.: Generative AI Beyond LLMs, 2024 (the classes); Dao et al.: FlashAttention,
        2022, section 3.1; :mod:`.roofline`, :mod:`.calibrations`.

    Example:
        options: {workload: sd-unet, device: a100-sxm-80gb}
        parameters: {attention: [plain, fused], batch: [2, 16]}

    Raises:
        SpecError: an option has an invalid value.
    """

    user_options: ClassVar[Sequence[str]] = ("workload", "platforms.*")

    workload: object = None
    device: str | None = None
    format: str | None = None
    attention: str | None = None
    batch: float | None = None
    convolution_passes: float | None = None
    linear_passes: float | None = None
    temporal_bandwidth: float | None = None
    platforms: Platforms | None = None

    def __post_init__(self) -> None:
        self._own = None
        if self.workload is not None:
            found = declare_workload(self, self.workload)
            self._own = None if found.is_named else found
        self._devices = devices_of(self.platforms or {})
        edition = hash_device_files((self.platforms or {}).values())
        self.version = "-".join(filter(None, (self.version, edition)))
        words: Mapping[str, Reading] = {
            "workload": CheckedInput(check_with_lookup(table_of)),
            "device": CheckedInput(self._check_device),
            "format": one_of(RECIPES, _WORDS["format"]),
            "attention": one_of(_KERNELS, _FUSED),
        }
        own = {} if self._own is None else {"workload": self._own.label}
        table = {**_NUMBERS, **words, **({"workload": one_of(own.values())} if own else {})}
        given = {name: own.get(name, getattr(self, name)) for name in table}
        self.declare(Readings(table).fixed({k: v for k, v in given.items() if v is not None}))
        self._fixed = {k: v for k, v in self.readings.settled.items() if k in _WORDS}

    def evaluate(self, batch: Batch) -> Metrics:
        """Return the metrics of n designs, with a fault for each that its device cannot run."""
        every = fix_columns(batch, self._fixed)
        parts = (
            (rows, self._evaluate_group(every.take(rows), *words))
            for words, rows in groups(every, _WORDS)
        )
        return gather_parts(len(batch), self.provides, parts)

    def _evaluate_group(
        self, batch: Batch, workload: str, name: str, number: str, attention: str
    ) -> Metrics:
        """Return the metrics of one workload on one device in one format."""
        device, recipe = look_up_row("device", name, self._devices), RECIPES[number]
        if recipe.rate not in device.flops_per_s:
            reasons = [f"{name} has no units for {number}"] * len(batch)
            return Metrics(columns={}, failures=infeasible_rows(reasons))
        calibration = calibration_on(device, number)
        on = OperatorDevice(device=device, recipe=recipe, calibration=calibration)
        values = {key: self.readings.column(key, batch) for key in _NUMBERS}
        own = self._own
        operators = _operators_of(workload) if own is None else operators_of(own.table)
        plain, fused = (
            times_of(operators, on, OperatorRun(**values), fused=one) for one in (False, True)
        )
        found = fused if attention == _FUSED else plain
        latency, attended = found.total_s, found.by_class[CLASSES.index("attention")]
        columns = {
            "latency": latency,
            "throughput": values["batch"] / latency,
            "temporal_share": found.temporal_s / np.where(attended > 0, attended, 1.0),
            "fused_gain": plain.total_s / fused.total_s,
            "bottleneck": np.argmax(found.by_class, axis=0).astype(float),
            "extrapolated": np.full(len(batch), float(not calibration.own)),
        }
        for place, kind in enumerate(CLASSES):
            columns[f"{kind}_time"] = found.by_class[place]
            columns[f"{kind}_share"] = found.by_class[place] / latency
        return _add_sequences(columns, operators, len(batch))

    def _check_device(self, name: str, value: Value) -> None:
        if not look_up_row(name, value, self._devices).flops_per_s:
            raise SpecError(f"{value} has no listed rate", hint="give it one in platforms")


def _add_sequences(columns: dict[str, Floats], operators: Operators, size: int) -> Metrics:
    """Return the metrics with the lengths of sequences, which a network without attention lacks."""
    names = ("longest_sequence", "shortest_sequence")
    if operators.second is None:
        reasons = dict.fromkeys(range(size), "the network has no attention")
        columns |= {name: np.full(size, np.nan) for name in ("temporal_share", *names)}
        undefined = dict.fromkeys(("temporal_share", *names), reasons)
        return Metrics(columns=columns, undefined=undefined)
    ends = (operators.queries.max(), operators.queries.min())
    columns |= {name: np.full(size, end) for name, end in zip(names, ends, strict=True)}
    return Metrics(columns=columns)


@lru_cache(maxsize=64)
def _operators_of(workload: str) -> Operators:
    return operators_of(table_of(workload))
