"""Evaluator ``edge.partition``: a network that is cut between a device and a server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import ClassVar

import numpy as np

from dse.core.batch import Batch
from dse.core.metric import Failure, Metric, Metrics
from dse.core.values import Floats, Ints, Value
from dse.errors import DseError, EvaluationError, SpecError
from dse_evaluators.accelerators.devices.gpu_layers import kernels_in_order
from dse_evaluators.accelerators.devices.gpu_power import power_of
from dse_evaluators.accelerators.devices.gpu_run import machine
from dse_evaluators.accelerators.devices.platforms import Platforms, devices_of, hash_device_files
from dse_evaluators.accelerators.devices.recipes import RECIPES
from dse_evaluators.alike import fix_columns, gather_parts, groups, infeasible_rows
from dse_evaluators.declared_evaluator import DeclaredEvaluator
from dse_evaluators.edge.cut_points import CutPoints, cut_points
from dse_evaluators.edge.partition_costs import CutCosts, Prefixes, bisect_threshold
from dse_evaluators.edge.radios import read_radio
from dse_evaluators.formats.names import format_of
from dse_evaluators.reading_table import CheckedInput, NumberInput, Reading, Readings, one_of
from dse_evaluators.readings import look_up_row, number_format
from dse_evaluators.workloads.own.own_workload import declare_workload

_MOST_CUTS = 2**31 - 1

_MOST_NAMES = 40
"""Most cuts that the note of ``dse check`` names one by one."""

_METRICS = (
    Metric(name="latency", unit="s", goal="minimize"),
    Metric(name="device_time", unit="s", goal="minimize", part_of="latency"),
    Metric(name="link_time", unit="s", goal="minimize", part_of="latency"),
    Metric(name="server_time", unit="s", goal="minimize", part_of="latency"),
    Metric(name="energy", unit="J", goal="minimize"),
    Metric(name="compute_energy", unit="J", goal="minimize", part_of="energy"),
    Metric(name="radio_energy", unit="J", goal="minimize", part_of="energy"),
    Metric(name="waiting_energy", unit="J", goal="minimize", part_of="energy"),
    Metric(name="sent", unit="B", goal="minimize"),
    Metric(name="sees_input", words=("no", "yes")),
    Metric(name="threshold_bandwidth", unit="B/s"),
    Metric(name="extrapolated", words=("no", "yes")),
)

_WORDS = ("device", "server", "device_format", "server_format", "cut_format")
_USUAL = {"device_format": "fp16", "server_format": "fp16", "cut_format": "fp16"}
_NUMBERS: Mapping[str, Reading] = {
    "cut": NumberInput(0, _MOST_CUTS, whole=True),
    "bandwidth": NumberInput(1, 1e15, "B/s"),
    "round_trip": NumberInput(0, 3600, "s"),
}


class Partition(DeclaredEvaluator, reads=_NUMBERS, provides=_METRICS, version="1"):
    """Latency and device energy of a network whose first layers run on a device, the rest remotely.

    At ``cut: 0`` the server gets the input; at the last cut the device computes all, and sends
    nothing. In between, all tensors that a later layer needs, including the skip connections of
    residual blocks, are sent in ``cut_format`` (:mod:`.cut_points`).
    ``threshold_bandwidth`` is the least bandwidth at which some other cut is as fast as the device
    alone; it is undefined if no bandwidth suffices. ``extrapolated`` is 1 if the device or the
    server was not measured in its format (see Limits).

    Args:
        workload: a workload of ``workloads.catalogue``, or a network of yours: a path,
            ``{python: net.py:make, input: [3, 32, 32]}``, or a module; see ``docs/workloads.md``.
        platforms: figures of devices and servers of yours, or paths of their files, by name: see
            :mod:`.platforms`.
        radio: radio of the device: the energy of a sent bit and the power while it sends, as in
            ``{bit_energy: 300 nJ, power: 0.2 W}``; or ``wifi``, ``lte``, ``3g``, whose figures are
            assumed, or ``wired``, whose energy is not counted.
        input_bits: bits of each element of the network's input, as it is sent at ``cut: 0``.

    Inputs:
        cut: the number of the cut, from 0; the note of ``dse check`` names the layer before each
            cut.
        cut_format: number format of the tensors that cross the cut, such as ``fp16`` or ``int8``.
        device: a device of ``devices.csv`` or of ``platforms``.
        server: a device of ``devices.csv`` or of ``platforms``.
        device_format: a format of ``RECIPES``, in which the device computes.
        server_format: a format of ``RECIPES``, in which the server computes.
        bandwidth: bandwidth of the link from the device to the server.
        round_trip: time of an empty message there and back; the result of the network is taken as
            an empty message.

    Limits:
        Times are those of ``accelerators.gpu`` for one example: GEMMs alone, by roofline constants
        that were measured on the devices of ``docs/devices.md``; for other devices, such as
        Jetsons, by medians over those devices. The server has no other load. Conversion to the
        format of the cut costs no time. Results of the network other than its last are not sent.
        Layer tables of language models and of the catalogue are cut between blocks.

    Error:
        Not validated: no measurement of a network that is cut was available. Crossing tensors are
        counted exactly for ONNX files. The loss of quality by a format is measured by
        ``compression.recipe``.

    Source:
        Kang et al.: Neurosurgeon, 2017, for cuts between layers; radios: Huang et al., 2012
        (:mod:`.radios`, from memory, hence assumed).

    Example:
        options: {workload: alexnet, device: jetson-tx2, server: a100-sxm-80gb, round_trip: 10 ms}
        parameters: {cut: [0, 4, 8], bandwidth: [125000.0, 12500000.0], cut_format: [fp16, int8]}

    Raises:
        SpecError: an option has an invalid value, or the network has no place to cut.
    """

    user_options: ClassVar[Sequence[str]] = ("workload", "platforms.*")

    workload: object = "alexnet"
    platforms: Platforms | None = None
    radio: str | Mapping[str, float | str] = "wifi"
    input_bits: float = 8.0
    cut: float | None = None
    bandwidth: float | str | None = None
    round_trip: float | str | None = None
    cut_format: str | None = None
    device_format: str | None = None
    server_format: str | None = None
    device: str | None = None
    server: str | None = None

    def __post_init__(self) -> None:
        self._workload = declare_workload(self, self.workload)
        self._radio = read_radio(self.radio)
        if not 0 < self.input_bits <= 64:
            raise SpecError(
                f"input_bits is {self.input_bits:g}", hint="bits of an element, 1 to 64"
            )
        self._devices = devices_of(self.platforms or {})
        edition = hash_device_files((self.platforms or {}).values())
        self.version = "-".join(filter(None, (self.version, edition)))
        numbers, notes = dict(_NUMBERS), [*getattr(self, "notes", ()), self._radio.note]
        if self._workload.is_known:
            last = len(self._cuts.names) - 1
            numbers["cut"] = NumberInput(0, last, whole=True)
            notes.append(_describe_cuts(self._workload.label, self._cuts.names))
        table: Mapping[str, Reading] = {
            **numbers,
            **dict.fromkeys(("device", "server"), CheckedInput(self._check_device)),
            **{name: one_of(RECIPES, _USUAL[name]) for name in ("device_format", "server_format")},
            "cut_format": CheckedInput(number_format(), _USUAL["cut_format"]),
        }
        self.declare(Readings.of(table, self))
        self._fixed = {k: v for k, v in self._readings.settled.items() if k in _WORDS}
        notes += [self._note_figures(str(self._fixed.get(one, ""))) for one in ("device", "server")]
        self.notes = tuple(dict.fromkeys(filter(None, notes)))
        self._costs: dict[tuple[str, ...], CutCosts | str] = {}

    @property
    def names_of_cuts(self) -> Sequence[str]:
        """Name of the last layer on the device at each cut."""
        return self._cuts.names

    def evaluate(self, batch: Batch) -> Metrics:
        """Compute latency, energy and sent bytes of n designs, with the infeasible ones."""
        every = fix_columns(batch, self._fixed)
        parts = (
            (rows, self._evaluate_group(batch.take(rows), words))
            for words, rows in groups(every, {name: _USUAL.get(name, "") for name in _WORDS})
        )
        return gather_parts(len(batch), self.provides, parts)

    def costs_of(self, words: Mapping[str, str]) -> CutCosts:
        """Return the costs of all cuts, without the link, for values of the categorical inputs.

        Args:
            words: the devices and formats by the name of their input.

        Raises:
            EvaluationError: a device has no units for its format, or a tensor does not fit the
                format of the cut.
        """
        given = {**_USUAL, **{k: str(v) for k, v in self._fixed.items()}, **words}
        found = self._look_up_costs(tuple(given[name] for name in _WORDS))
        if isinstance(found, str):
            raise EvaluationError(found)
        return found

    @cached_property
    def _cuts(self) -> CutPoints:
        try:
            return cut_points(self._workload)
        except DseError as error:
            if self._workload.is_known and isinstance(error, SpecError):
                raise SpecError(error.problem, hint=error.hint, part=["workload"]) from error
            raise

    def _evaluate_group(self, batch: Batch, words: tuple[str, ...]) -> Metrics:
        costs = self._look_up_costs(words)
        if isinstance(costs, str):
            return Metrics(columns={}, failures=infeasible_rows([costs] * len(batch)))
        cut, bandwidth, round_trip = (self._readings.column(name, batch) for name in _NUMBERS)
        last = len(costs.sent_bytes) - 1
        beyond = cut > last
        place = np.where(beyond, last, cut).astype(np.int64)
        failures = {
            int(row): Failure(
                kind="infeasible",
                reason=f"cut {cut[row]:.0f} is beyond the last of {self._workload.label}, {last}",
            )
            for row in np.flatnonzero(beyond)
        }
        columns = self._compute_columns(costs, place, (bandwidth, round_trip))
        undefined = np.flatnonzero(np.isnan(columns["threshold_bandwidth"])).tolist()
        reason = "the device alone is faster than the round trip and the server, at any bandwidth"
        return Metrics(
            columns=columns,
            failures=failures,
            undefined={"threshold_bandwidth": dict.fromkeys(undefined, reason)},
        )

    def _compute_columns(
        self,
        costs: CutCosts,
        place: Ints,
        link: tuple[Floats, Floats],
    ) -> Mapping[str, Floats]:
        bandwidth, round_trip = link
        sends = place < len(costs.sent_bytes) - 1
        sent = costs.sent_bytes[place]
        upload_s = sent / bandwidth
        link_s = np.where(sends, upload_s + round_trip, 0.0)
        device_s, server_s = costs.device_s[place], costs.server_s[place]
        radio_j = 8.0 * sent * self._radio.bit_j + upload_s * self._radio.base_w
        waiting_j = costs.idle_w * (link_s + server_s)
        compute_j = costs.device_j[place]
        trips, at = np.unique(round_trip, return_inverse=True)
        return {
            "latency": device_s + link_s + server_s,
            "device_time": device_s,
            "link_time": link_s,
            "server_time": server_s,
            "energy": compute_j + radio_j + waiting_j,
            "compute_energy": compute_j,
            "radio_energy": radio_j,
            "waiting_energy": waiting_j,
            "sent": sent,
            "sees_input": (self._cuts.inputs[place] > 0).astype(float),
            "threshold_bandwidth": bisect_threshold(costs, trips)[at],
            "extrapolated": np.full(len(place), float(not costs.measured)),
        }

    def _look_up_costs(self, words: tuple[str, ...]) -> CutCosts | str:
        """Return the costs of all cuts, or the reason why the combination is infeasible."""
        if words not in self._costs:
            self._costs[words] = self._compute_costs(*words)
        return self._costs[words]

    def _compute_costs(
        self, device: str, server: str, device_format: str, server_format: str, cut_format: str
    ) -> CutCosts | str:
        cuts = self._cuts
        kernels = kernels_in_order(cuts.layers)
        halves = []
        for name, number in ((device, device_format), (server, server_format)):
            found = look_up_row("device", name, self._devices)
            if RECIPES[number].rate not in found.flops_per_s:
                return f"{name} has no units for {number}"
            halves.append(Prefixes.of(machine(found, number, ""), kernels))
        try:
            features = [_bytes_of(cut_format, int(one)) for one in cuts.features]
        except EvaluationError as error:
            return f"{cut_format} at the cut: {error.problem}"
        own, remote = halves
        return CutCosts(
            device_s=own.time_s[cuts.before],
            device_j=own.energy_j[cuts.before],
            idle_w=own.idle_w,
            server_s=remote.time_s[-1] - remote.time_s[cuts.before],
            sent_bytes=np.array(features) + cuts.inputs * self.input_bits / 8.0,
            measured=own.measured and remote.measured,
        )

    def _note_figures(self, name: str) -> str:
        source = self._devices[name].source if name else ""
        if "unverified" not in source:
            return ""
        return f"figures of {name} that are quoted from memory are assumed: docs/devices.md"

    def _check_device(self, name: str, value: Value) -> None:
        device = look_up_row(name, value, self._devices)
        for number, recipe in RECIPES.items():
            if recipe.rate in device.flops_per_s:
                power_of(device, number)


def _bytes_of(number_format: str, elements: int) -> float:
    """Return the bytes of a tensor with its scales and zero points."""
    return float(format_of(number_format).bits((elements,)).total_bytes) if elements else 0.0


def _describe_cuts(label: str, names: Sequence[str]) -> str:
    last = f"cut {len(names) - 1} of {label} computes all on the device"
    if len(names) > _MOST_NAMES:
        return last
    listed = ", ".join(f"{at} {name}" for at, name in enumerate(names))
    return f"{last}; cuts, each after the layer: {listed}"
