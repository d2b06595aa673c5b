"""A study's state as server-sent events: told when it changes, for as long as somebody listens."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator

from dse.errors import DseError
from dse.serve.refusals import UnknownError
from dse.serve.runners import Runners
from dse.serve.telling import state
from dse.serve.watching import Watch

LOOK_S = 0.5
"""How often to look at the record."""

LIFE_S = 600.0
"""After so long a stream ends; a browser opens another by itself."""

AGAIN_MS = 2000
"""How long a browser waits before it opens another."""

MOST = 64
"""Streams at once; others are told to come again."""

_AWAY_S = 2.0
_QUIET_S = 15.0


class Listeners:
    """How many listen, so that nobody can open streams without end; all stop when it is over."""

    def __init__(self) -> None:
        self.count = 0
        self.over = False

    async def told(self, watch: Watch, runners: Runners, name: str) -> AsyncIterator[bytes]:
        """The events of one study, from its present state on."""
        if self.count >= MOST:
            yield b"retry: 10000\nevent: busy\ndata: {}\n\n"
            return
        self.count += 1
        try:
            async for event in _events(watch, runners, name):
                if self.over:
                    return
                yield event
        finally:
            self.count -= 1


async def _events(watch: Watch, runners: Runners, name: str) -> AsyncIterator[bytes]:
    yield f"retry: {AGAIN_MS}\n\n".encode()
    mark, begun = "", time.monotonic()
    said = begun
    while time.monotonic() - begun < LIFE_S:
        try:
            now = await asyncio.to_thread(lambda: state(watch.snapshot(name), runners))
        except UnknownError as error:
            yield _event("gone", json.dumps({"error": error.problem}))
            return
        except DseError as error:  # a storage that is busy or away may come back
            mark = ""  # so that its state is told again then
            yield _event("away", json.dumps({"error": error.problem, "hint": error.hint}))
            await asyncio.sleep(_AWAY_S)
            continue
        if now.mark != mark:
            mark, said = now.mark, time.monotonic()
            yield _event("state", now.model_dump_json())
        elif time.monotonic() - said > _QUIET_S:
            said = time.monotonic()
            yield b": still here\n\n"
        else:
            yield b""
        await asyncio.sleep(LOOK_S)


def _event(kind: str, text: str) -> bytes:
    """One event; JSON on one line has no line break that could begin another field."""
    return f"event: {kind}\ndata: {text}\n\n".encode()
