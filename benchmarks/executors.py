"""What an executor costs: ``python benchmarks/executors.py [COUNT [SECONDS]]``.

Prints CSV: for each executor of two workers how long it takes to start, how long evaluations that
only sleep take after that, and how many times as fast that is as one after the other.
"""

from __future__ import annotations

import sys
import time

from dse.protocols import Executor
from dse.registry import make
from dse.testing.executor_contract import collected
from dse.testing.work import perform, task

EXECUTORS = {
    "serial": {},
    "processes": {"workers": 2},
    "ray": {"workers": 2},
}


def main() -> None:
    """Measure each executor."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 30
    seconds = float(sys.argv[2]) if len(sys.argv) > 2 else 1.0
    print("executor,evaluations,sleep_s,start_s,run_s,close_s,speedup,speedup_with_start_and_close")
    serial_s = 0.0
    for name, options in EXECUTORS.items():
        start_s, run_s, close_s = measured(name, options, count, seconds)
        serial_s = serial_s or run_s
        whole_s = start_s + run_s + close_s
        print(
            f"{name},{count},{seconds:g},{start_s:.2f},{run_s:.2f},{close_s:.2f},"
            f"{serial_s / run_s:.2f},{serial_s / whole_s:.2f}"
        )


def measured(
    name: str, options: dict[str, int], count: int, seconds: float
) -> tuple[float, float, float]:
    """How long it takes to start, to run all tasks, and to close."""
    begun = time.perf_counter()
    executor: Executor = make("executors", name, perform, **options)
    for number in range(executor.capacity):
        executor.submit(task(number, "sleep", 0.5))  # each worker gets one, and is up after it
    collected(executor, executor.capacity)
    started = time.perf_counter()
    kept_busy(executor, count, seconds)
    done = time.perf_counter()
    executor.close()
    return started - begun, done - started, time.perf_counter() - done


def kept_busy(executor: Executor, count: int, seconds: float) -> None:
    """As a study does it: a new task for each that is done."""
    asked = flying = 0
    while asked < count or flying:
        while asked < count and flying < executor.capacity:
            executor.submit(task(asked, "sleep", seconds))
            asked, flying = asked + 1, flying + 1
        flying -= len(executor.collect())


if __name__ == "__main__":
    main()
