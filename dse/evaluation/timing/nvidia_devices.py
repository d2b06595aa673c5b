"""Energy, clock and throttling of NVIDIA devices, read from the driver's library NVML."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from functools import cache

_LIBRARY = "libnvidia-ml.so.1"
_SM_CLOCK = 1
_THROTTLED = 0x8 | 0x20 | 0x40 | 0x80
"""Hardware slowdown, thermal slowdown by software and hardware, and power brake."""


@dataclass(frozen=True, slots=True)
class NvidiaDevice:
    """NVIDIA GPU, identified by its index in the driver's list.

    Source:
        NVML API reference: nvmlDeviceGetTotalEnergyConsumption in mJ, nvmlDeviceGetClockInfo in
        MHz, nvmlClocksThrottleReasons.
    """

    index: int
    handle: int

    @property
    def name(self) -> str:
        """Name of the device in records, such as ``gpu-0``."""
        return f"gpu-{self.index}"

    def energy_j(self) -> float:
        """Return the energy in J since the GPU driver was loaded; 0 if it is not reported."""
        value = ctypes.c_ulonglong()
        return 1e-3 * value.value if self._get("nvmlDeviceGetTotalEnergyConsumption", value) else 0

    def clock_hz(self) -> float | None:
        """Return the present clock of the GPU's cores in Hz; ``None`` if it is not reported."""
        value = ctypes.c_uint()
        if not self._get("nvmlDeviceGetClockInfo", _SM_CLOCK, value):
            return None
        return 1e6 * value.value

    def is_throttled(self) -> bool:
        """Return whether heat or the power supply limits the clock at present."""
        value = ctypes.c_ulonglong()
        found = self._get("nvmlDeviceGetCurrentClocksThrottleReasons", value)
        return found and bool(value.value & _THROTTLED)

    def _get(self, function: str, *arguments: int | ctypes.c_uint | ctypes.c_ulonglong) -> bool:
        *given, value = arguments
        library = _library()
        assert library is not None
        assert not isinstance(value, int)
        call = getattr(library, function, None)
        handle = ctypes.c_void_p(self.handle)
        return call is not None and call(handle, *given, ctypes.byref(value)) == 0


def find_devices() -> tuple[NvidiaDevice, ...]:
    """Return the NVIDIA devices of this machine; empty without a driver."""
    library = _library()
    if library is None:
        return ()
    count = ctypes.c_uint()
    if library.nvmlDeviceGetCount_v2(ctypes.byref(count)) != 0:
        return ()
    devices = []
    for index in range(count.value):
        handle = ctypes.c_void_p()
        if library.nvmlDeviceGetHandleByIndex_v2(index, ctypes.byref(handle)) == 0:
            devices.append(NvidiaDevice(index, handle.value or 0))
    return tuple(devices)


@cache
def _library() -> ctypes.CDLL | None:
    try:
        library = ctypes.CDLL(_LIBRARY)
    except OSError:
        return None
    return library if library.nvmlInit_v2() == 0 else None
