"""Worker process that searches ranges of an enumeration until its parent process ends."""

from __future__ import annotations

import pickle
import traceback
from multiprocessing.connection import Connection
from typing import Any

from dse.optimizers.exact.chunks import search_stretch


def serve(handle: int) -> None:
    """Receive a pickled problem, then search each received index range and send its result.

    An index range is a tuple of the first place, the end place (exclusive) and known losses of
    designs before the first. An exception is sent as a string and ends the worker.

    Args:
        handle: file descriptor of the worker's pipe to its driver.
    """
    pipe: Connection[Any, Any] = Connection(handle)
    try:
        problem = pickle.loads(pipe.recv_bytes())  # noqa: S301 - the driver's own bytes
        while True:
            start, stop, beaters = pipe.recv()
            pipe.send(search_stretch(problem, start, stop, beaters))
    except (EOFError, ConnectionError):  # the driver is gone
        return
    except Exception as error:  # noqa: BLE001 - the driver must report any failure
        traceback.print_exc()
        pipe.send(f"{type(error).__name__}: {error}")
