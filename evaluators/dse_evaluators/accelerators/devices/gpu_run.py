"""Time, energy and memory of one workload on one device in one format, for n batch sizes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from dse.core.values import Floats
from dse_evaluators.accelerators.devices.calibrations import DeviceCalibration, calibration_on
from dse_evaluators.accelerators.devices.devices import Device
from dse_evaluators.accelerators.devices.gpu_layers import Kernels
from dse_evaluators.accelerators.devices.gpu_power import Power, compute_draw, power_of
from dse_evaluators.accelerators.devices.recipes import RECIPES, GemmRecipe
from dse_evaluators.accelerators.devices.roofline import times

TIMES = ("compute", "memory", "chain", "conversion", "launch", "power")
"""Parts of a kernel's time, by the resource that it waits for; ``power``: the power cap."""

ENERGIES = ("base", "compute", "memory", "idle")

MOST_OUTSIDE = 0.1
"""Largest share of time in kernels of uncalibrated shapes; above it, a run is extrapolated."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibratedDevice:
    """Device in one number format, with its measured calibration and its power model."""

    device: Device
    recipe: GemmRecipe
    calibration: DeviceCalibration
    power: Power

    @property
    def flops_per_s(self) -> float:
        """Dense peak rate [FLOP/s] on the data sheet in the number format."""
        return self.device.flops_per_s[self.recipe.rate]


def machine(device: Device, number_format: str, stack: str) -> CalibratedDevice:
    """Return a device with its calibration in a format of ``RECIPES`` that it supports.

    Raises:
        SpecError: the device was not measured with that stack, or its power limit is unknown.
    """
    return CalibratedDevice(
        device=device,
        recipe=RECIPES[number_format],
        calibration=calibration_on(device, number_format, stack),
        power=power_of(device, number_format),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuLoad:
    """Batch size, power cap and duty cycle (fraction of time at work) of n runs; each (n,)."""

    batch: Floats
    power_cap: Floats
    """Power cap as a share of the power limit; the cap must be above the base power."""
    duty: Floats
    """Share of time in which the device works; otherwise it is idle."""


def run(machine: CalibratedDevice, kernels: Kernels, load: GpuLoad) -> Mapping[str, Floats]:
    """Compute time, energy, memory and validity flags of n runs of a network on a device, (n,)."""
    work = kernels.work(machine.recipe, load.batch)
    free = times(
        work,
        machine.calibration.constants,
        flops_per_s=machine.flops_per_s,
        bytes_per_s=machine.device.dram_bytes_per_s,
    )
    cap_w = load.power_cap * machine.power.limit_w
    spent = compute_draw(machine.power, work.flops, work.moved_bytes, free.total_s, cap_w)

    def total(each: Floats) -> Floats:
        return (each * kernels.repeats).sum(axis=0)

    waits = (free.compute_s, free.memory_s, free.chain_s, free.conversion_s, free.launch_s)
    waited = [total(each) for each in (*waits, spent.throttled_s)]
    latency = np.sum(waited, axis=0)
    idle_j = machine.power.idle_w * latency * (1.0 / load.duty - 1.0)
    energies = [*(total(each) for each in (spent.base_j, spent.compute_j, spent.memory_j)), idle_j]
    energy = np.sum(energies, axis=0)
    inside = kernels.within(machine.calibration.ranges, load.batch)
    outside = total(np.where(inside, 0.0, free.total_s + spent.throttled_s)) / latency
    unseen = (outside > MOST_OUTSIDE) | (not machine.calibration.own)
    return {
        "latency": latency,
        "throughput": load.batch / latency,
        **_name_columns("time", TIMES, waited),
        "energy": energy,
        **_name_columns("energy", ENERGIES, energies),
        "power": energy * load.duty / latency,
        "utilization": total(work.flops) / (latency * machine.flops_per_s),
        "memory": kernels.resident_bytes(machine.recipe, load.batch),
        "bottleneck": np.argmax(waited, axis=0).astype(float),
        "extrapolated": unseen.astype(float),
        "power_measured": np.full(len(latency), float(machine.power.measured)),
    }


def _name_columns(what: str, names: tuple[str, ...], columns: list[Floats]) -> dict[str, Floats]:
    return {f"{name}_{what}": column for name, column in zip(names, columns, strict=True)}
