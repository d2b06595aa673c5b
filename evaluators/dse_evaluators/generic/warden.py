"""Guard process that kills the processes a driver started if the driver itself is killed.

A driver that is killed by SIGKILL cannot clean up. Linux can signal a child whose parent died
(``PR_SET_PDEATHSIG``), but not the child's children, and setting it needs code between fork and
exec, which is not safe in a process with threads. The warden holds the read end of a pipe whose
write end is the driver's: end-of-file on the pipe means that the driver died, on every Unix.
"""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
from types import TracebackType
from typing import Self

from dse.system.credentials import children_environment
from dse.system.process_marks import end_marked

_PROGRAM = f"""
import os, signal, sys
from pathlib import Path

{inspect.getsource(end_marked)}

told = [line.split() for line in sys.stdin]
for group, mark in told[-1:]:
    try:
        os.killpg(int(group), signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass
    end_marked(mark)
"""


class Warden:
    """Context manager that kills a program's processes if this process dies.

    These are a process group and the processes with a mark, a variable in their environment; only
    those of the last call of :meth:`watch` are killed.
    """

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(  # noqa: S603 - a constant program
            [sys.executable, "-I", "-S", "-c", _PROGRAM],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=children_environment(),
            bufsize=0,
            start_new_session=True,
        )
        return self

    def watch(self, group: int, mark: str) -> None:
        """Watch this process group and the processes marked ``mark``, not earlier ones."""
        assert self._process.stdin is not None
        os.write(self._process.stdin.fileno(), f"{group} {mark}\n".encode())

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.kill()
        self._process.wait()
        assert self._process.stdin is not None
        self._process.stdin.close()
