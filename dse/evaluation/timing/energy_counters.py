"""Energy counters of processors (RAPL) and of NVIDIA devices (NVML), where they can be read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from dse.evaluation.timing.nvidia_devices import find_devices

_POWERCAP = Path("/sys/class/powercap")


@dataclass(frozen=True, slots=True, kw_only=True)
class EnergyCounter:
    """Hardware counter of consumed energy, which restarts from 0 at ``range_j`` joules."""

    name: str
    read_j: Callable[[], float]
    range_j: float = 0.0

    def used_j(self, before_j: float, after_j: float) -> float:
        """Return the energy between two readings that are less than one range apart."""
        return after_j - before_j + (self.range_j if after_j < before_j else 0.0)


def find_counters(powercap: Path = _POWERCAP) -> tuple[EnergyCounter, ...]:
    """Return the counters that can be read: one per processor package, one per NVIDIA device.

    Most virtual machines have no such counters, and on many systems only the administrator may read
    the counters of RAPL. A counter covers all programs on its package or device.

    Source:
        Linux, Documentation/power/powercap/powercap.rst: energy_uj, max_energy_range_uj. NVML API
        reference: nvmlDeviceGetTotalEnergyConsumption.
    """
    devices = (
        EnergyCounter(name=device.name, read_j=device.energy_j)
        for device in find_devices()
        if device.energy_j() > 0
    )
    return (*_packages(powercap), *devices)


def read_counters(counters: tuple[EnergyCounter, ...]) -> Mapping[str, float]:
    """Return the reading of each energy counter, in joules."""
    return {counter.name: counter.read_j() for counter in counters}


def _packages(powercap: Path) -> Iterator[EnergyCounter]:
    """Yield the counters of whole packages; counters of parts would count energy twice."""
    for folder in sorted(powercap.glob("intel-rapl:*")):
        try:
            name = (folder / "name").read_text(encoding="ascii").strip()
            range_uj = int((folder / "max_energy_range_uj").read_text(encoding="ascii"))
            _read_rapl_j(folder)
        except (OSError, ValueError):
            continue
        if name.startswith("package"):
            read = partial(_read_rapl_j, folder)
            yield EnergyCounter(name=name, read_j=read, range_j=range_uj * 1e-6)


def _read_rapl_j(folder: Path) -> float:
    return int((folder / "energy_uj").read_text(encoding="ascii")) * 1e-6
