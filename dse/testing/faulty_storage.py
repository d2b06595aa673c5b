"""Fault-injecting storage: chosen calls fail, hang, or take effect without a reply."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, Literal

from dse.errors import StorageUnavailableError
from dse.protocols import Storage

Mishap = Literal["fails", "acts and fails", "hangs"]
"""Fault of one call: it fails without effect, fails after its effect, or takes effect late."""

UNCOUNTED = ("beat", "close")
"""Calls that are not numbered: a thread sends heartbeats at times the test cannot control."""


@dataclass(kw_only=True)
class FaultyStorage:
    """Proxy of a storage that injects faults into chosen calls.

    Args:
        storage: the real storage.
        mishaps: faults by call number, counted from 0 without the :data:`UNCOUNTED` calls.
        times: how often in a row such a call fails.
        hang_s: seconds for which a hanging call is delayed; heartbeats fail meanwhile.
    """

    storage: Storage
    mishaps: Mapping[int, Mishap] = field(default_factory=dict)
    times: int = 1
    hang_s: float = 0.0
    calls: list[str] = field(default_factory=list)
    _lock: Lock = field(default_factory=Lock)
    _left: int = 0
    _mishap: Mishap | None = None
    _hangs: bool = False

    def __getattr__(self, name: str) -> Any:  # every method of the protocol
        method = getattr(self.storage, name)
        if name == "beat" and self._hangs:
            return _fail
        if name in UNCOUNTED:
            return method

        def call(*args: Any, **options: Any) -> Any:
            return self._call(name, method, args, options)

        return call

    def _call(self, name: str, method: Callable[..., Any], args: Any, options: Any) -> Any:
        match self._next(name):
            case "fails":
                raise StorageUnavailableError(f"{name} did not get through")
            case "acts and fails":
                method(*args, **options)
                raise StorageUnavailableError(f"the answer to {name} was lost")
            case "hangs":
                self._hangs = True
                time.sleep(self.hang_s)
                self._hangs = False
            case None:
                pass
        return method(*args, **options)

    def _next(self, name: str) -> Mishap | None:
        """Return the fault of the next call, if any; a failing call fails ``times`` times."""
        with self._lock:
            if self._left:
                self._left -= 1
                return self._mishap
            place = len(self.calls)
            self.calls.append(name)
            self._mishap = self.mishaps.get(place)
            if self._mishap in ("fails", "acts and fails"):
                self._left = self.times - 1
            return self._mishap


def _fail(*_: object) -> None:
    raise StorageUnavailableError("the beat did not get through")
