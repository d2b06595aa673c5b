"""Output that goes into a pipe whose reader, such as ``head``, leaves when it has seen enough."""

from __future__ import annotations

import io
import os
import stat
import sys
from typing import TextIO

from typing_extensions import Buffer


class _Pipe(io.FileIO):
    """Writing end of a pipe; without a reader, output is lost without an error."""

    raises = False

    def write(self, data: Buffer) -> int:
        try:
            return super().write(data)
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), self.fileno())
            if self.raises:
                raise
            return memoryview(data).nbytes


def outlive_readers() -> None:
    """Let this process, and the status that it ends with, not depend on who reads its output."""
    sys.stdout = _outliving(sys.stdout)
    sys.stderr = _outliving(sys.stderr)


def raise_without_reader() -> None:
    """Let the next write to standard output raise once the pipe has no reader.

    The process has no other way to end.
    """
    pipe = getattr(getattr(sys.stdout, "buffer", None), "raw", None)
    if isinstance(pipe, _Pipe):
        pipe.raises = True


def _outliving(stream: TextIO) -> TextIO:
    """Return a stream like this one; itself, if it is no pipe."""
    if not isinstance(stream, io.TextIOWrapper):  # none, or one of a test or a notebook
        return stream
    try:
        mode = os.fstat(stream.fileno()).st_mode
    except (OSError, ValueError):
        return stream
    if not stat.S_ISFIFO(mode) and not stat.S_ISSOCK(mode):
        return stream
    stream.flush()
    return io.TextIOWrapper(
        io.BufferedWriter(_Pipe(stream.fileno(), "wb", closefd=False)),
        encoding=stream.encoding,
        errors=stream.errors,
        line_buffering=stream.line_buffering,
        write_through=stream.write_through,
    )
