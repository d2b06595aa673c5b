"""Rates and power of a device by its clock."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dse.errors import SpecError, nearest
from dse_evaluators.accelerators.devices.devices import Device, highest_clock_of
from dse_evaluators.accelerators.devices.gpu_power import power_of
from dse_evaluators.clusters.apex.stage import DeviceRates

FABRICS: Mapping[str, str] = {
    "h100-sxm": "h100-nccl",
    "h200-sxm": "h200-nccl",
    "a100-sxm-80gb": "a100-dgx",
}
"""Fabric of ``collectives.csv`` within a node, by device."""

_MEMORY_LEAST, _MEMORY_SLOPE = 0.55, 0.63
"""Intercept and slope of the relative memory bandwidth over the relative clock: assumed."""

_BUSY_SHARE, _EXPONENT = 0.75, 2.2
"""Share of the power limit drawn by a busy device at its highest clock, and a scaling exponent.

Power above idle scales with the clock to this exponent. Both are assumed, not measured.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class DvfsDevice:
    """Device with dynamic voltage and frequency scaling (DVFS)."""

    device: Device
    highest_hz: float

    @staticmethod
    def of(device: Device) -> DvfsDevice:
        """Return a device with dynamic voltage and frequency scaling, at its highest clock.

        Raises:
            SpecError: the clock of the device, or its fabric within a node, is not listed.
        """
        highest_hz = highest_clock_of(device.name)
        if device.name not in FABRICS:
            raise SpecError(
                f"no fabric of {device.name} was measured", hint=nearest(device.name, FABRICS)
            )
        return DvfsDevice(device=device, highest_hz=highest_hz)

    @property
    def fabric(self) -> str:
        return FABRICS[self.device.name]

    @property
    def idle_w(self) -> float:
        return power_of(self.device, "bf16").idle_w

    def rates(self, clock_hz: float) -> DeviceRates:
        """Return a device's peak rates at a clock; GEMMs scale with the clock, memory less."""
        share = clock_hz / self.highest_hz
        memory = min(1.0, _MEMORY_LEAST + _MEMORY_SLOPE * share)
        return DeviceRates(
            flops_per_s=share * self.device.flops_per_s["fp16"],
            bytes_per_s=memory * self.device.dram_bytes_per_s,
        )

    def busy_w(self, clock_hz: float) -> float:
        """Return the power [W] that a busy device draws above idle at a clock."""
        limit_w = self.device.power_limit_w
        assert limit_w is not None  # idle_w raises for the others
        above_w = max(_BUSY_SHARE * limit_w - self.idle_w, 0.0)
        return above_w * (clock_hz / self.highest_hz) ** _EXPONENT
