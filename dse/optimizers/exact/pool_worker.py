"""Worker process that searches parts of an enumeration until its driver is gone."""

from __future__ import annotations

import pickle
import traceback
from multiprocessing.connection import Connection
from typing import Any

from dse.core.values import Floats
from dse.optimizers.exact.chunks import search_stretch

Part = tuple[int, int, Floats]
"""From which place, to which, and losses of designs before it."""


def serve(handle: int) -> None:
    """The life of a worker: a pickled problem first, then parts, each answered by what it holds.

    Args:
        handle: the file descriptor of its pipe; the answer to what fails is a text.
    """
    pipe: Connection[Any, Any] = Connection(handle)
    try:
        problem = pickle.loads(pipe.recv_bytes())  # noqa: S301 - the driver's own bytes
        while True:
            start, stop, beaters = pipe.recv()
            pipe.send(search_stretch(problem, start, stop, beaters))
    except (EOFError, ConnectionError):  # the driver is gone
        return
    except Exception as error:  # noqa: BLE001 - whatever it is, the driver must tell it
        traceback.print_exc()
        pipe.send(f"{type(error).__name__}: {error}")
