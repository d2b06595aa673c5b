"""State of a study as server-sent events, sent on each change while a client listens."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator

from dse.errors import DseError
from dse.serve.cached_value import CachedValue
from dse.serve.errors import UnknownError
from dse.serve.runners import Runners
from dse.serve.serialize import state
from dse.serve.watch import StorageMonitor

LOOK_S = 0.5
"""How often to look at the record."""

LIFE_S = 600.0
"""After so long a stream ends; a browser opens another by itself."""

AGAIN_MS = 2000
"""How long a browser waits before it opens another."""

POLL_MS = 10_000
"""How long a reader waits that has no place among the streams."""

_AWAY_S = 2.0
_QUIET_S = 15.0


class Listeners:
    """The event streams of a server; all read one look at each study, and stop when it is over."""

    def __init__(self) -> None:
        self.over = False
        self._looks: dict[str, CachedValue[tuple[str, bytes]]] = {}

    async def told(
        self, watch: StorageMonitor, runners: Runners, name: str
    ) -> AsyncIterator[bytes]:
        """Yield the events of one study, from its present state on."""
        yield f"retry: {AGAIN_MS}\n\n".encode()
        mark, begun = "", time.monotonic()
        said = begun
        while time.monotonic() - begun < LIFE_S and not self.over:
            now, event, pause_s = await self._read(watch, runners, name)
            if now != mark or not now:  # why it cannot be read is repeated
                mark, said = now, time.monotonic()
                yield event
            elif time.monotonic() - said > _QUIET_S:
                said = time.monotonic()
                yield b": still here\n\n"
            else:
                yield b""
            if not pause_s:
                return
            await asyncio.sleep(pause_s)

    async def told_once(
        self, watch: StorageMonitor, runners: Runners, name: str
    ) -> AsyncIterator[bytes]:
        """Yield the present state, and when to come again: for a reader without a place."""
        _, event, _ = await self._read(watch, runners, name)
        yield f"retry: {POLL_MS}\n\n".encode() + event + b"event: busy\ndata: {}\n\n"

    async def _read(
        self, watch: StorageMonitor, runners: Runners, name: str
    ) -> tuple[str, bytes, float]:
        """Return the mark of the present state, its event, and when to read again; 0 is never.

        The mark of what cannot be read is empty.
        """
        look = self._looks.setdefault(name, CachedValue())

        def event(_: object) -> tuple[str, bytes]:
            now = state(watch.snapshot(name), runners)
            return now.mark, _event("state", now.model_dump_json())

        try:
            return *await asyncio.to_thread(look.at, event), LOOK_S
        except UnknownError as error:
            self._looks.pop(name, None)
            return "", _event("gone", json.dumps({"error": error.problem})), 0.0
        except DseError as error:  # a storage that is busy or away may come back
            words = json.dumps({"error": error.problem, "hint": error.hint})
            return "", _event("away", words), _AWAY_S


def _event(kind: str, text: str) -> bytes:
    """One event; JSON on one line has no line break that could begin another field."""
    return f"event: {kind}\ndata: {text}\n\n".encode()
