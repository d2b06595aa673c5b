"""Workers whose driver is killed, or interrupted while they start, leave without a word."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress

import pytest

pytestmark = pytest.mark.slow

STARTING = """
from dse.executors.processes import Processes
from dse.testing.work import Needy, task

if __name__ == "__main__":
    executor = Processes(Needy("x" * {payload}), workers=2)
    print(flush=True)
    executor.submit(task(0, "sleep", 60))
    executor.submit(task(1, "sleep", 60))
    executor.collect()
"""
"""A driver that is starting workers: what is too much for a pipe is taken when they are there."""

ANSWERING = """
from dse.executors.processes import Processes
from dse.testing.work import perform, task

if __name__ == "__main__":
    executor = Processes(perform, workers=2)
    executor.submit(task(0, "large", 2_000))
    executor.submit(task(1, "large", 2_000))
    for number in range(2, 1_000_000):
        executor.collect()
        if number == 20:
            print(flush=True)
        executor.submit(task(number, "large", 2_000))
"""
"""A driver whose workers answer all the time."""


STRUCK = """
import multiprocessing.resource_tracker, multiprocessing.util as library, os, signal
from dse.executors.processes import Processes
from dse.testing.work import perform, task

def strike(*words):
    born(*words)
    os.kill(os.getpid(), signal.SIGKILL)

if __name__ == "__main__":
    executor = Processes(perform, workers=1)
    multiprocessing.resource_tracker.ensure_running()
    born, library.spawnv_passfds = library.spawnv_passfds, strike
    print(flush=True)
    executor.submit(task(0, "sleep", 60))
"""
"""A driver that is killed when its worker is born, before it could say what that is to be."""


def ends_silently(script: str, number: int, after_s: float) -> tuple[bytes, bytes]:
    """What a driver and all that it started print from when it is struck until all are gone."""
    driver = subprocess.Popen(
        [sys.executable, "-c", script],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    with driver:
        assert driver.stdout.readline()
        with suppress(subprocess.TimeoutExpired):
            driver.wait(after_s)
        os.killpg(driver.pid, number) if number == signal.SIGINT else driver.kill()
        return driver.communicate(timeout=300)  # whoever holds the pipes keeps it waiting


@pytest.mark.parametrize("payload", [10, 20_000_000], ids=["small work", "large work"])
@pytest.mark.parametrize("after_s", [0.1, 0.6])
def test_workers_that_start_while_their_driver_is_killed_are_silent(payload, after_s) -> None:
    script = STARTING.replace("{payload}", str(payload))
    assert ends_silently(script, signal.SIGKILL, after_s) == (b"", b"")


def test_a_worker_that_is_born_while_its_driver_is_killed_is_silent() -> None:
    assert ends_silently(STRUCK, signal.SIGKILL, 300.0) == (b"", b"")


@pytest.mark.parametrize("after_s", [0.0, 0.1])
def test_workers_that_answer_while_their_driver_is_killed_are_silent(after_s: float) -> None:
    assert ends_silently(ANSWERING, signal.SIGKILL, after_s) == (b"", b"")


@pytest.mark.parametrize("after_s", [0.1, 0.3])
def test_workers_that_start_while_a_terminal_interrupts_them_are_silent(after_s: float) -> None:
    _, said = ends_silently(STARTING.replace("{payload}", "10"), signal.SIGINT, after_s)
    assert said.endswith(b"KeyboardInterrupt\n")
    assert said.count(b"Traceback") == 1  # the driver's own, a script that does not handle it
