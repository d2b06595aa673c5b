"""Clocks and thermal throttling of processors and devices, where the system reports them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dse.evaluation.timing.nvidia_devices import find_devices

_CPUS = Path("/sys/devices/system/cpu")
_CPU_INFO = Path("/proc/cpuinfo")


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockSample:
    """Clock frequencies of processors and devices in Hz by name, and throttling counts.

    Throttling is ``None`` if unknown: ``events`` counts throttling events of the processors since
    the start of the machine, ``throttled_devices`` the devices whose clock is limited at present.
    """

    clock_hz: dict[str, float]
    events: int | None
    throttled_devices: int | None


def sample_clocks(cpus: Path = _CPUS, info: Path = _CPU_INFO) -> ClockSample:
    """Return the mean clock of the processors and the clock of each NVIDIA device, in Hz.

    Clocks that are not reported are left out. In a virtual machine the clock of ``/proc/cpuinfo``
    is usually a constant.

    Source:
        Linux, Documentation/admin-guide/pm/cpufreq.rst: scaling_cur_freq in kHz;
        Documentation/ABI/testing/sysfs-devices-system-cpu: thermal_throttle.
    """
    found_khz = _numbers(cpus, "cpu[0-9]*/cpufreq/scaling_cur_freq")
    clocks_hz = [1e3 * khz for khz in found_khz] or _clocks_of_info(info)
    counts = _numbers(cpus, "cpu[0-9]*/thermal_throttle/core_throttle_count")
    named = {"cpu": sum(clocks_hz) / len(clocks_hz)} if clocks_hz else {}
    devices = find_devices()
    for device in devices:
        clock_hz = device.clock_hz()
        if clock_hz is not None:
            named[device.name] = clock_hz
    return ClockSample(
        clock_hz=named,
        events=sum(counts) if counts else None,
        throttled_devices=sum(device.is_throttled() for device in devices) if devices else None,
    )


def throttling_between(samples: Sequence[ClockSample]) -> int | None:
    """Return the throttling events over the samples, plus the most devices throttled at once."""
    events = [sample.events for sample in samples if sample.events is not None]
    devices = [one.throttled_devices for one in samples if one.throttled_devices is not None]
    if not events and not devices:
        return None
    return (events[-1] - events[0] if events else 0) + max(devices, default=0)


def clock_ends(samples: Sequence[ClockSample]) -> dict[str, tuple[float, float]]:
    """Return the lowest and the highest clock over samples, in Hz, by name."""
    names = sorted(frozenset[str]().union(*(sample.clock_hz for sample in samples)))
    seen = {name: [one.clock_hz[name] for one in samples if name in one.clock_hz] for name in names}
    return {name: (min(values), max(values)) for name, values in seen.items()}


def _numbers(folder: Path, pattern: str) -> list[int]:
    found = []
    for path in folder.glob(pattern):
        try:
            found.append(int(path.read_text(encoding="ascii")))
        except (OSError, ValueError):
            continue
    return found


def _clocks_of_info(info: Path) -> list[float]:
    try:
        text = info.read_text(encoding="utf-8")
    except OSError:
        return []
    return [1e6 * float(mhz) for mhz in re.findall(r"^cpu MHz\s*:\s*([\d.]+)$", text, re.MULTILINE)]
