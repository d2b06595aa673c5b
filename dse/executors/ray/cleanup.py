"""A small process that outlives its driver just long enough to tidy up after a Ray of its own.

Ray's servers follow a driver that was killed, but the helpers of its servers live on for a minute
or two, and its folder for ever. The warden reads a pipe whose other end is the driver's: the end
of the pipe is the end of the driver.
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
    """Removes a folder, and ends processes, when it is closed or this process is no more."""

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
        """End these too, by number and time of birth: numbers are given again."""
        for pid in pids:
            with suppress(OSError):
                stat = Path(f"/proc/{pid}/stat").read_text()
                self._tell(f"{pid} {stat.rpartition(')')[2].split()[19]}")

    def close(self) -> None:
        """Tidy up now."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(_END_S)
        except subprocess.TimeoutExpired:  # it goes on by itself
            return

    def _tell(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{line}\n".encode())
        self._process.stdin.flush()
