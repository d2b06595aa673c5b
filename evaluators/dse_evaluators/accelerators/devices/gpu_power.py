"""Power model of a device under load, and the slowdown caused by a power cap."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from dse.core.values import Floats
from dse.errors import SpecError
from dse_evaluators.accelerators.devices.devices import Device
from dse_evaluators.accelerators.devices.recipes import RECIPES
from dse_evaluators.csv_files.csv_records import read_rows

IDLE_SHARE = 0.3
"""Idle power as a share of the power limit, for devices without a sourced figure.

Source: L. Barroso, U. Hoelzle: The Case for Energy-Proportional Computing, 2007; it is also the
default of mlsysim 0.3.0.
"""

MEMORY_SHARE = 0.35
"""Memory power at full bandwidth as a share of limit minus idle: an assumption, not measured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Power:
    """Power model of a device [W]: ``P = min(limit, base + flop_j * FLOP/s + byte_j * B/s)``.

    Source:
        gpu_power.csv holds least-squares fits, without the limit, to the power that
        ai-dynamo/aiconfigurator@095f58a (Apache-2.0) measured for GEMMs: their mean error is 16 to
        49 %. Unmeasured devices are assumed to draw ``IDLE_SHARE`` of the limit when idle, the
        full limit at peak rate, and ``MEMORY_SHARE`` of limit minus idle at full bandwidth.
    """

    limit_w: float
    base_w: float
    idle_w: float
    """Power between runs."""
    flop_j: float
    byte_j: float
    measured: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """Energy of n kernels (base, compute, memory), and the seconds that a power cap adds, (n,)."""

    base_j: Floats
    compute_j: Floats
    memory_j: Floats
    throttled_s: Floats


def power_of(device: Device, number_format: str) -> Power:
    """Return the power model of a device in a format of ``RECIPES`` that it supports.

    Raises:
        SpecError: the power limit of the device is unknown.
    """
    if device.power_limit_w is None:
        raise SpecError(
            f"the power limit of {device.name} is unknown",
            hint=f"platforms: {{{device.name}: {{power_limit: 300 W}}}}",
        )
    idle_w = IDLE_SHARE * device.power_limit_w if device.idle_w is None else device.idle_w
    for alike in (number_format, _SIBLINGS.get(number_format, "")):
        rows = [
            row
            for row in _read_power_rows()
            if (row["device"], row["format"]) == (device.name, alike)
        ]
        if rows:
            base_w, flop_j, byte_j = (
                float(np.median([float(row[name]) for row in rows]))
                for name in ("base_w", "flop_j", "byte_j")
            )
            return Power(
                limit_w=device.power_limit_w,
                base_w=base_w,
                idle_w=min(idle_w, base_w),
                flop_j=flop_j,
                byte_j=byte_j,
                measured=True,
            )
    above_w = device.power_limit_w - idle_w
    return Power(
        limit_w=device.power_limit_w,
        base_w=idle_w,
        idle_w=idle_w,
        flop_j=above_w / device.flops_per_s[RECIPES[number_format].rate],
        byte_j=MEMORY_SHARE * above_w / device.dram_bytes_per_s,
        measured=False,
    )


def compute_draw(
    power: Power, flops: Floats, moved_bytes: Floats, seconds: Floats, cap_w: Floats
) -> Drawn:
    """Compute the energy and slowdown of kernels under a power cap above ``base_w``.

    ``seconds`` are the kernels' times at the device's power limit, to which the power is clipped.
    Under a lower cap, the same work takes longer, until its power meets the cap. The energy saved
    because voltage falls with the clock is not modelled.
    """
    compute_j, memory_j = power.flop_j * flops, power.byte_j * moved_bytes
    work_j = compute_j + memory_j
    most_j = (power.limit_w - power.base_w) * seconds
    clip = most_j / np.maximum(work_j, most_j)
    capped_s = np.maximum(seconds, clip * work_j / (cap_w - power.base_w))
    return Drawn(
        base_j=power.base_w * capped_s,
        compute_j=clip * compute_j,
        memory_j=clip * memory_j,
        throttled_s=capped_s - seconds,
    )


_SIBLINGS = {"bf16": "fp16", "fp16": "bf16"}


@cache
def _read_power_rows() -> tuple[Mapping[str, str], ...]:
    return read_rows(Path(__file__).with_name("gpu_power.csv"))
