"""Output to a pipe whose reader, such as ``head``, may exit before the program has finished."""

from __future__ import annotations

import io
import os
import stat
import sys
from typing import TextIO

from typing_extensions import Buffer


class _Pipe(io.FileIO):
    """Write end of a pipe that discards output once the reader is gone, unless it ``raises``."""

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
    """Make standard output and error discard output when their reader is gone.

    The process then runs to its end, with the same exit status as with a reader.
    """
    sys.stdout = _outliving(sys.stdout)
    sys.stderr = _outliving(sys.stderr)


def raise_without_reader() -> None:
    """Make writes to standard output raise ``BrokenPipeError`` once the pipe has no reader.

    Output that never ends by itself would otherwise continue unread.
    """
    pipe = getattr(getattr(sys.stdout, "buffer", None), "raw", None)
    if isinstance(pipe, _Pipe):
        pipe.raises = True


def _outliving(stream: TextIO) -> TextIO:
    """Return a stream that discards output without a reader; the same stream if it is no pipe."""
    if not isinstance(stream, io.TextIOWrapper):  # None, or a replacement by a test or notebook
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
