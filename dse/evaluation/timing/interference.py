"""Detection of other load on the machine while code is timed."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_STAT = Path("/proc/stat")
_TASKS = Path("/proc/self/task")
_BUSY = (0, 1, 2, 5, 6, 7)
"""Places in a line of ``/proc/stat``: user, nice, system, irq, softirq, steal (``man 5 proc``)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadSample:
    """Processor time that the machine and this process have used until ``at_s``, in seconds."""

    at_s: float
    busy_s: float
    own_s: float

    def foreign_cores(self, before: LoadSample) -> float:
        """Return the mean number of cores that other processes used since an earlier sample.

        Time that a hypervisor gave to other machines counts, too.
        """
        others_s = (self.busy_s - before.busy_s) - (self.own_s - before.own_s)
        return max(others_s, 0.0) / (self.at_s - before.at_s)


def sample_load(stat: Path = _STAT) -> LoadSample | None:
    """Return the processor time used until now; ``None`` where the system does not report it."""
    busy = dict(_busy_ticks(stat)).get("cpu")
    if busy is None:
        return None
    return LoadSample(
        at_s=time.perf_counter(),
        busy_s=busy / os.sysconf("SC_CLK_TCK"),
        own_s=time.process_time(),
    )


def busy_by_cpu(stat: Path = _STAT) -> dict[int, int]:
    """Return the ticks that each processor has been busy since the start of the machine."""
    return {int(name[3:]): ticks for name, ticks in _busy_ticks(stat) if name != "cpu"}


def waited_ns(tasks: Path = _TASKS) -> int | None:
    """Return how long this process's threads were runnable without a processor, in total.

    The time grows if other programs use the processors. ``None`` where the system does not report
    it.

    Source:
        Linux, Documentation/scheduler/sched-stats.rst, /proc/<pid>/schedstat: the second number.
    """
    total, found = 0, False
    try:
        threads = os.listdir(tasks)  # noqa: PTH208 - Path.iterdir takes three times as long
    except OSError:
        return None
    for thread in threads:
        try:
            with open(f"{tasks}/{thread}/schedstat", "rb") as file:  # noqa: PTH123 - likewise
                total += int(file.read().split()[1])
        except (OSError, IndexError, ValueError):
            continue  # the thread has ended, or the kernel keeps no such statistics
        found = True
    return total if found else None


def load_limit() -> float:
    """Return the load of other processes, in cores, above which it counts as interference.

    A quarter of a core, or a fiftieth of the machine: the resolution of a window of 0.25 s is about
    a tenth of a core, and small tasks of the system are always there.
    """
    return max(0.25, (os.cpu_count() or 1) / 50)


def _busy_ticks(stat: Path) -> Iterator[tuple[str, int]]:
    try:
        lines = stat.read_text(encoding="ascii").splitlines()
    except OSError:
        return
    for line in lines:
        name, *ticks = line.split()
        if name.startswith("cpu") and len(ticks) > max(_BUSY):
            yield name, sum(int(ticks[place]) for place in _BUSY)
