"""Cleanup process that removes the leftovers of a local Ray cluster after its driver has ended.

When a driver is killed, Ray's servers end with it, but their helper processes survive for a minute
or two, and its temporary folder remains. The cleanup process reads a pipe from the driver: when the
pipe closes, the driver has ended.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from dse.system.credentials import children_environment

_PROGRAM = """
import os, shutil, sys
folder, *processes = sys.stdin.read().splitlines()
for pid, started in (line.split() for line in processes):
    try:
        with open(f"/proc/{pid}/stat") as file:
            if file.read().rpartition(")")[2].split()[19] == started:
                os.kill(int(pid), 9)
    except OSError:
        pass
shutil.rmtree(folder, ignore_errors=True)
"""
_END_S = 10.0


class RayWarden:
    """Handle of a process that removes a folder and kills given processes once the driver ends."""

    def __init__(self, folder: str) -> None:
        self._process = subprocess.Popen(  # noqa: S603 - a constant program
            [sys.executable, "-I", "-S", "-c", _PROGRAM],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=children_environment(),
            start_new_session=True,
        )
        self._tell(folder)

    def watch(self, pids: Iterable[int]) -> None:
        """Add processes to kill, identified by id and start time because ids are reused."""
        for pid in pids:
            with suppress(OSError):
                stat = Path(f"/proc/{pid}/stat").read_text()
                self._tell(f"{pid} {stat.rpartition(')')[2].split()[19]}")

    def close(self) -> None:
        """Start the cleanup now, and wait for it for a limited time."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(_END_S)
        except subprocess.TimeoutExpired:  # it continues on its own
            return

    def _tell(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{line}\n".encode())
        self._process.stdin.flush()
