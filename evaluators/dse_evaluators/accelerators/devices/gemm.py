"""Evaluator ``accelerators.gemm``: one GEMM on one device, with a library's or a stated tile."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import numpy as np

from dse.core.batch import Batch
from dse.core.metric import Metric, Metrics
from dse.core.values import Array, Floats, Value
from dse.errors import SpecError, nearest
from dse.protocols import CalibrationResult, ModelError
from dse_evaluators.accelerators.devices.devices import DEVICES, Device, device_of
from dse_evaluators.accelerators.devices.error_table import gather_errors, state_errors
from dse_evaluators.accelerators.devices.gemm_tiles import TILES, waves
from dse_evaluators.accelerators.devices.gpu_power import compute_draw
from dse_evaluators.accelerators.devices.gpu_run import CalibratedDevice, machine
from dse_evaluators.accelerators.devices.platforms import (
    Platforms,
    devices_of,
    hash_device_files,
    is_path,
    read_device,
)
from dse_evaluators.accelerators.devices.product_errors import product_errors
from dse_evaluators.accelerators.devices.recipes import RECIPES
from dse_evaluators.accelerators.devices.roofline import KernelWork, Times, times
from dse_evaluators.alike import gather_parts, groups, infeasible_rows
from dse_evaluators.declared_evaluator import DeclaredEvaluator
from dse_evaluators.reading_table import CheckedInput, NumberInput, Reading, Readings, one_of
from dse_evaluators.readings import look_up_row

LIBRARY = "library"
"""Name for the tile that a library selects, with which the constants were measured."""

_TIMES = ("compute", "memory", "chain", "conversion", "launch")
_ENERGIES = ("base", "compute", "memory")

_METRICS = (
    Metric(name="latency", unit="s", goal="minimize"),
    *(Metric(name=f"{name}_time", unit="s", part_of="latency") for name in _TIMES),
    Metric(name="energy", unit="J", goal="minimize"),
    *(Metric(name=f"{name}_energy", unit="J", part_of="energy") for name in _ENERGIES),
    Metric(name="utilization", goal="maximize"),
    Metric(name="wave_share", goal="maximize"),
    Metric(name="unit_traffic", unit="B", goal="minimize"),
    Metric(name="bottleneck", words=_TIMES),
    Metric(name="extrapolated", words=("no", "yes")),
)

_TIMED = ("latency", "utilization")
_EXACT = ("wave_share", "unit_traffic", "bottleneck", "extrapolated")

_SIDES = ("m", "n", "k")


def _check_power_limit(device: Device) -> None:
    if device.power_limit_w is None:
        known = [each.name for each in DEVICES.values() if each.power_limit_w is not None]
        raise SpecError(
            f"the power limit of {device.name} is unknown", hint=nearest(device.name, known)
        )


_INPUTS: Mapping[str, Reading] = {
    **dict.fromkeys(_SIDES, NumberInput(1, 2**31)),
    "device": one_of(DEVICES),
    "format": one_of(RECIPES),
    "tile": one_of((LIBRARY, *TILES), LIBRARY),
}


class Gemm(DeclaredEvaluator, reads=_INPUTS, provides=_METRICS, version="2"):
    """Latency and energy of a GEMM of m x k by k x n, optionally with a given tile.

    A wave is the tiles that all compute units process at one time. With a given tile, a last wave
    that is partly empty costs as much as a full one, and compute units reach the fraction of the
    peak rate that was measured for libraries, which choose their tiles. This fraction already
    includes the libraries' own losses to partly empty waves, so the estimate with a given tile is
    pessimistic, and is marked as ``extrapolated``. ``wave_share`` is the utilization of the waves,
    ``unit_traffic`` the bytes that compute units fetch; for ``library``, ``wave_share`` is 1 and
    each operand is fetched once.

    Args:
        device: name of a device of ``devices.csv``, or path of a file that ``dse calibrate
            devices`` writes; for designs without an input ``device``.
        format: a format of ``RECIPES``, for designs without an input ``format``.
        stack: software whose measured constants are used: a framework (``vllm``), a version
            (``vllm-0.24.0``), or empty for the median of all.
        platforms: figures of devices of yours, or paths of their files, by name, such as ``{mine:
            {like: h100-sxm, memory: 96 GB}}``: see :mod:`.platforms`.

    Inputs:
        device: a device of ``devices.csv`` or ``platforms``, or the file that the option names.
        format: a format of ``RECIPES``.
        tile: one of ``TILES``, or ``library``: that of the vendor's library.

    Error:
        As ``accelerators.gpu``; not validated with a given tile.

    Example:
        options: {device: h100-sxm, format: bf16}
        parameters: {m: [1, 16, 256], n: [4096], k: [4096, 8192], tile: [library, 128x128]}

    Source:
        :mod:`.roofline`, :mod:`.gemm_tiles`; docs/devices.md for errors.

    Raises:
        SpecError: an option has an invalid value.
    """

    user_options: ClassVar[Sequence[str]] = ("device", "platforms.*")

    device: str = "h100-sxm"
    format: str = "bf16"
    stack: str = ""
    platforms: Platforms | None = None

    def __post_init__(self) -> None:
        usual = {"device": self.device, "format": self.format}
        own = {self.device: read_device(Path(self.device))} if is_path(self.device) else {}
        platforms = self.platforms or {}
        self._devices = {**devices_of(platforms), **own}
        edition = hash_device_files((*own, *platforms.values()))
        self.version = "-".join(filter(None, (type(self).version, edition)))
        inputs = {**_INPUTS, "device": CheckedInput(self._check_device)}
        self.declare(Readings(inputs).otherwise(usual))

    def evaluate(self, batch: Batch) -> Metrics:
        """Compute latency, energy and other metrics of n GEMMs, with the infeasible ones."""
        usual = {"device": self.device, "format": self.format, "tile": LIBRARY}
        parts = (
            (rows, self._evaluate_device(batch.take(rows), *words))
            for words, rows in groups(batch, usual)
        )
        return gather_parts(len(batch), self.provides, parts)

    def model_errors(self, batch: Batch) -> Mapping[str, Sequence[ModelError]]:
        """Return the relative model errors of n GEMMs, by metric.

        The errors were found on measured GEMMs.
        """
        usual = {"device": self.device, "format": self.format, "tile": LIBRARY}
        parts = []
        for words, rows in groups(batch, usual):
            device, number_format, _ = words
            found = self._evaluate_device(batch.take(rows), *words)
            outside = found.columns.get("extrapolated", np.ones(len(rows)))
            errors = product_errors(
                self._device(device), number_format, self.stack, (outside > 0).tolist()
            )
            parts.append((rows, state_errors(self.provides, errors, _TIMED, _EXACT)))
        return gather_errors(len(batch), parts)

    @staticmethod
    def calibrate(file: Path, like: str) -> CalibrationResult:
        """Fit the roofline constants of a device to measured GEMMs.

        Args:
            file: CSV file with the columns m, n, k, dtype and a time.
            like: name of the device of ``devices.csv`` with the figures of the measured one.

        Raises:
            SpecError: a row is invalid, or the measurements cannot determine the constants.
        """
        # SciPy is slow to import, and only this needs it
        from dse_evaluators.accelerators.devices.device_fit import calibrate_device

        return calibrate_device(file, device_of(like))

    def _check_device(self, name: str, value: Value) -> None:  # noqa: ARG002 - the text names it
        _check_power_limit(self._device(str(value)))

    def _device(self, name: str) -> Device:
        return look_up_row("device", name, self._devices)

    def _evaluate_device(self, batch: Batch, device: str, number_format: str, tile: str) -> Metrics:
        """Compute the metrics of GEMMs on one device in one format and tile."""
        sheet = self._device(device)
        lacks = _lacks(sheet, number_format, tile)
        if lacks:
            return Metrics(columns={}, failures=infeasible_rows([lacks] * len(batch)))
        sides = [batch[name].astype(float) for name in _SIDES]
        return Metrics(
            columns=_compute_columns(machine(sheet, number_format, self.stack), sides, tile)
        )


def _compute_columns(
    machine: CalibratedDevice, sides: list[Array], tile: str
) -> Mapping[str, Floats]:
    m, n, k = sides
    recipe, calibration = machine.recipe, machine.calibration
    work = KernelWork(
        flops=2.0 * m * n * k,
        moved_bytes=recipe.operand_bytes * (m * k + k * n) + recipe.result_bytes * m * n,
        chain=k,
        converted=m * k * recipe.converts,
    )
    full, fetched = np.ones(len(m)), m * k + k * n
    if tile != LIBRARY:
        units = machine.device.compute_units
        assert units is not None
        cut = waves(m, n, k, TILES[tile], units)
        full, fetched = cut.full, cut.fetched
    time = times(
        replace(work, flops=work.flops / full),
        calibration.constants,
        flops_per_s=machine.flops_per_s,
        bytes_per_s=machine.device.dram_bytes_per_s,
    )
    limit_w = np.full(len(m), machine.power.limit_w)
    spent = compute_draw(machine.power, work.flops, work.moved_bytes, time.total_s, limit_w)
    inside = np.full(len(m), calibration.own and tile == LIBRARY)
    for side, least, most in zip(
        (m, n, k), calibration.ranges[::2], calibration.ranges[1::2], strict=True
    ):
        inside &= (least <= side) & (side <= most)
    waited = _collect_times(time)
    return {
        "latency": np.sum(list(waited.values()), axis=0),
        **{f"{name}_time": column for name, column in waited.items()},
        "energy": spent.base_j + spent.compute_j + spent.memory_j,
        "base_energy": spent.base_j,
        "compute_energy": spent.compute_j,
        "memory_energy": spent.memory_j,
        "utilization": work.flops / (time.total_s * machine.flops_per_s),
        "wave_share": full,
        "unit_traffic": recipe.operand_bytes * fetched,
        "bottleneck": np.argmax(list(waited.values()), axis=0).astype(float),
        "extrapolated": (~inside).astype(float),
    }


def _collect_times(time: Times) -> dict[str, Floats]:
    return {name: getattr(time, f"{name}_s") for name in _TIMES}


def _lacks(device: Device, number_format: str, tile: str) -> str:
    """Return why a device cannot run this format and tile; empty if it can."""
    if RECIPES[number_format].rate not in device.flops_per_s:
        return f"{device.name} has no units for {number_format}"
    if tile != LIBRARY and device.compute_units is None:
        return f"the number of compute units of {device.name} is unknown"
    return ""
