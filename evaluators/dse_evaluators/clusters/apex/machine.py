"""The device of a plan at a clock: its rates, and what it draws."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dse.errors import SpecError, nearest
from dse_evaluators.accelerators.devices.devices import Device, device_of
from dse_evaluators.accelerators.devices.gpu_power import power_of
from dse_evaluators.clusters.apex.stage import DeviceRates

CLOCK_HZ: Mapping[str, float] = {"h100-sxm": 1.98e9, "h200-sxm": 1.98e9, "a100-sxm-80gb": 1.41e9}
"""By device, its highest clock; vendor's sheets, recalled."""

FABRICS: Mapping[str, str] = {
    "h100-sxm": "h100-nccl",
    "h200-sxm": "h200-nccl",
    "a100-sxm-80gb": "a100-dgx",
}
"""By device, the fabric of ``collectives.csv`` that joins those of a node."""

_MEMORY_LEAST, _MEMORY_SLOPE = 0.55, 0.63
"""How the rate of memory follows the clock: assumed."""

_BUSY_SHARE, _EXPONENT = 0.75, 2.2
"""Of the power limit, what a busy device draws at its highest clock, and how what it draws beyond
idle falls with the clock: assumed, nobody's measurement."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DvfsDevice:
    """A device whose clock may be lowered."""

    device: Device
    highest_hz: float

    @staticmethod
    def of(name: str) -> DvfsDevice:
        """The machine of a device's name.

        Raises:
            SpecError: there is none of this name, or its clock or its fabric is not listed.
        """
        device = device_of(name)
        if name not in CLOCK_HZ:
            raise SpecError(f"nobody listed the clock of {name}", hint=nearest(name, CLOCK_HZ))
        return DvfsDevice(device=device, highest_hz=CLOCK_HZ[name])

    @property
    def fabric(self) -> str:
        return FABRICS[self.device.name]

    @property
    def idle_w(self) -> float:
        return power_of(self.device, "bf16").idle_w

    def rates(self, clock_hz: float) -> DeviceRates:
        """Return the device's peak rates at a clock: products scale by it, memory by less."""
        share = clock_hz / self.highest_hz
        memory = min(1.0, _MEMORY_LEAST + _MEMORY_SLOPE * share)
        return DeviceRates(
            flops_per_s=share * self.device.flops_per_s["fp16"],
            bytes_per_s=memory * self.device.dram_bytes_per_s,
        )

    def busy_w(self, clock_hz: float) -> float:
        """Return the power that a device draws beyond idle while it works."""
        limit_w = self.device.power_limit_w
        assert limit_w is not None  # idle_w has refused the others
        above_w = max(_BUSY_SHARE * limit_w - self.idle_w, 0.0)
        return above_w * (clock_hz / self.highest_hz) ** _EXPONENT
