"""How fast the exact front of many designs is found: ``python benchmarks/exhaustive.py [STUDY]``.

Prints CSV. The study's optimizer is ``exhaustive`` or ``decompose``; without a study it is
``wide_systolic_exact.yaml``, and ``two_chips_exact.yaml`` is the other. Memory is the greatest sum
over all processes of what each has resident, looked at twenty times a second; pages that they
share are counted once for each.
"""

from __future__ import annotations

import argparse
import csv
import os
import resource
import sys
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path

import psutil

from dse.optimizers.decompose import Decomposed, find_exact_front
from dse.optimizers.exact.exact_front import ExactFront, exact_front
from dse.schema.study.plan import Plan, plan_of

STUDY = Path(__file__).parent / "wide_systolic_exact.yaml"

_LOOK_S = 0.05
_MIB = 2.0**20


class Memory:
    """Watches this process and its children."""

    def __init__(self) -> None:
        self.peak_mib = 0.0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Memory:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._over.wait(_LOOK_S):
            self.peak_mib = max(self.peak_mib, sum(map(_resident_mib, _processes())))


def main() -> None:
    """Search and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("study", nargs="?", type=Path, default=STUDY)
    parser.add_argument("--workers", type=int, default=None, help="without: one for each core")
    told = parser.parse_args()
    plan = plan_of(told.study.resolve())
    load = os.getloadavg()[0]
    with Memory() as memory:
        began_s, used_s = time.monotonic(), _cpu_s()
        front = _front(plan, told.workers)
        wall_s, cpu_s = time.monotonic() - began_s, _cpu_s() - used_s
    print(f"\n{front.text}", file=sys.stderr)
    figures = {
        "study": told.study.stem,
        "designs": front.total,
        "front": len(front.designs),
        "wall_s": f"{wall_s:.1f}",
        "cpu_s": f"{cpu_s:.1f}",
        "designs_per_s": f"{front.total / wall_s:.3g}",
        "designs_per_cpu_s": f"{front.total / cpu_s:.3g}",
        "peak_mib": f"{memory.peak_mib:.0f}",
        "cores": os.cpu_count(),
        "load_before": f"{load:.1f}",
        "load_after": f"{os.getloadavg()[0]:.1f}",
    }
    table = csv.writer(sys.stdout)
    table.writerow(figures)
    table.writerow(figures.values())


def _front(plan: Plan, workers: int | None) -> ExactFront | Decomposed:
    """The exact front by the study's own optimizer, ``exhaustive`` or ``decompose``."""
    if plan.optimizer.use == "decompose":
        return find_exact_front(plan.problem)
    with tempfile.TemporaryDirectory() as folder:
        kept = str(Path(folder, "progress"))
        return exact_front(plan.problem, workers=workers, checkpoint=kept, on_progress=_say)


def _say(done: int, total: int) -> None:
    print(f"\r{done:,} of {total:,}", end="", file=sys.stderr, flush=True)


def _cpu_s() -> float:
    """Of this process and of all that it has ended."""
    both = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in both)


def _processes() -> list[psutil.Process]:
    own = psutil.Process()
    return [own, *own.children()]


def _resident_mib(process: psutil.Process) -> float:
    with suppress(psutil.Error):
        return process.memory_info().rss / _MIB
    return 0.0


if __name__ == "__main__":
    main()
