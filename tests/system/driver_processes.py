"""Processes of a driver on this machine: to find them by kind, and to end them by a signal."""

import os
import random
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from dse.system.process_tree import descendants

LONGEST_WAIT_S = 300

SIGNALS = {
    "driver": [signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP],
    # Python turns SIGINT into exit status 1 while it starts: that is the program's own failure.
    "child": [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP],
    "worker": [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP],
    "head": [signal.SIGKILL, signal.SIGTERM],
    "raylet": [signal.SIGKILL, signal.SIGTERM],
}
"""By which of them a kind may be struck; SIGKILL where nothing is said. Workers ignore Ctrl-C."""


def marked(mark: str) -> Iterator[str]:
    """The command lines of all processes that have a text in their environment."""
    for path in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):
            if mark.encode() in path.read_bytes():
                yield path.with_name("cmdline").read_text().replace("\0", " ")


def workers(driver: int, kind: str) -> list[int]:
    """The processes under a driver of a kind.

    A ``child`` is a program that measures, a ``worker`` what calls it; on Ray an ``actor`` is Ray's
    process, a ``guard`` stands between it and its worker, and a ``node`` is all of a machine.
    """
    lines = {}
    for process in descendants(driver):
        with suppress(OSError):
            lines[process] = Path(f"/proc/{process}/cmdline").read_bytes()
    actors = [process for process, line in lines.items() if line.startswith(b"ray::WorkerActor")]
    spawned = {process for process, line in lines.items() if b"spawn_main" in line}
    under_actors = {process for actor in actors for process in descendants(actor)} & spawned
    under_guards = {one for guard in under_actors for one in descendants(guard)} & spawned
    match kind:
        case "child":
            return [one for one, line in lines.items() if b".py\0" in line and b"-S\0-E" in line]
        case "head":
            return [one for one, line in lines.items() if b"/gcs_server\0" in line]
        case "raylet":
            return [one for one, line in lines.items() if b"/raylet/raylet\0" in line]
        case "node":
            return [one for raylet in workers(driver, "raylet") for one in node(raylet)]
        case "actor":
            return actors
        case "guard":
            return sorted(under_actors - under_guards)
        case _:
            return sorted(under_guards if actors else spawned)


def node(raylet: int) -> list[int]:
    """The processes of a machine of a cluster, as far as they would end with it."""
    return [raylet, *descendants(raylet)]


def awaited(driver: subprocess.Popen, kind: str) -> list[int]:
    """The processes of the kind, as soon as there are any; none where the driver has ended."""
    until = time.monotonic() + LONGEST_WAIT_S
    while driver.poll() is None:
        assert time.monotonic() < until
        if found := workers(driver.pid, kind):
            return found
        time.sleep(0.01)
    return []


def struck(driver: subprocess.Popen, victim: str, *, within_s: float, rng: random.Random) -> bool:
    """True if the driver was alive, and the victim was there and is killed.

    A worker is struck some time after there is one, so that a study has several of them struck.
    """
    kind = victim.removeprefix("driver + ")
    chosen: list[int] = []
    if kind != "driver" and awaited(driver, kind):
        time.sleep(rng.random() * within_s)
        chosen = awaited(driver, kind)
    if driver.poll() is not None or (kind != "driver" and not chosen):
        return False
    if "driver" in victim:
        chosen = [*chosen, driver.pid]
    elif kind != "node":
        chosen = [rng.choice(chosen)]
    number = signal.SIGKILL if "+" in victim else rng.choice(SIGNALS.get(kind, [signal.SIGKILL]))
    return sum(killed(one, number) for one in chosen) > 0


def killed(process: int, number: signal.Signals) -> bool:
    """True if it was there."""
    try:
        os.kill(process, number)
    except ProcessLookupError:
        return False
    return True
