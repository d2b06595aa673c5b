"""Server-sent events with the state of a study, one at each change."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator

from dse.errors import DseError
from dse.serve.cached_value import CachedValue
from dse.serve.error_responses import UnknownError
from dse.serve.runners import Runners
from dse.serve.serialize import state
from dse.serve.snapshot_cache import StorageMonitor

LOOK_S = 0.5
"""Seconds between two reads of the record."""

LIFE_S = 600.0
"""Seconds after which a stream ends; a browser opens another by itself."""

AGAIN_MS = 2000
"""Milliseconds that a browser waits before it opens another stream."""

POLL_MS = 10_000
"""Milliseconds between two requests of a reader that has no stream slot."""

_AWAY_S = 2.0
_QUIET_S = 15.0


class Listeners:
    """Source of server-sent events; all streams of one study share the reads of its state.

    All streams end when the server does.
    """

    def __init__(self) -> None:
        self.over = False
        self._looks: dict[str, CachedValue[tuple[str, bytes]]] = {}

    async def stream(
        self, watch: StorageMonitor, runners: Runners, name: str
    ) -> AsyncIterator[bytes]:
        """Yield the server-sent events of one study: its present state, then each new state."""
        yield f"retry: {AGAIN_MS}\n\n".encode()
        mark, begun = "", time.monotonic()
        sent = begun
        while time.monotonic() - begun < LIFE_S and not self.over:
            now, event, pause_s = await self._read(watch, runners, name)
            if now != mark or not now:  # the error of a failed read is repeated
                mark, sent = now, time.monotonic()
                yield event
            elif time.monotonic() - sent > _QUIET_S:
                sent = time.monotonic()
                yield b": still here\n\n"
            else:
                yield b""
            if not pause_s:
                return
            await asyncio.sleep(pause_s)

    async def stream_once(
        self, watch: StorageMonitor, runners: Runners, name: str
    ) -> AsyncIterator[bytes]:
        """Yield the present state of the study as an event, with the time until a reconnect.

        This is for a client that has no slot for a lasting stream.
        """
        _, event, _ = await self._read(watch, runners, name)
        yield f"retry: {POLL_MS}\n\n".encode() + event + b"event: busy\ndata: {}\n\n"

    async def _read(
        self, watch: StorageMonitor, runners: Runners, name: str
    ) -> tuple[str, bytes, float]:
        """Read the study's state; return its mark, its event, and the seconds until the next read.

        0 seconds means that there is no next read. The mark is a string that identifies the state;
        it is empty if the study cannot be read.
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
    """Return one server-sent event with JSON data, which must be on one line."""
    return f"event: {kind}\ndata: {text}\n\n".encode()
