"""Checks of every request before it reaches a route: host, size, duration, cookie and token."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Iterator
from http.cookies import CookieError, SimpleCookie

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dse.serve.access import COOKIE, AccessRules, same_origin
from dse.serve.connection_limits import PLACE, ClientSlots, client_of
from dse.serve.error_responses import refusal

BODY_BYTES = 64 * 1024
"""Maximum size of a request body; a longer one is refused."""

BODY_S = 10.0
"""Maximum time in seconds that a request may take to arrive."""

PIECE_BYTES = 64 * 1024
"""Maximum size of a piece of a response; each piece waits until the client has read others."""

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:"
    " blob:; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
"""Content security policy: scripts only from this server; plotly needs inline styles."""

_HEADERS = {
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
    "content-security-policy": POLICY,
}
_log = logging.getLogger("uvicorn.error")  # the logger that the server prints
_READING = ("GET", "HEAD", "OPTIONS", "TRACE", "QUERY")  # safe methods: RFC 9110, 9.2.1
_CHANGING = "POST"
_ALLOWED = {"allow": f"GET, HEAD, {_CHANGING}"}
_PRINTED = "dse serve printed it when it started"
_STRANGE = ("cross-site", "same-site")
_FREE = ("/login", "/assets/")
_Reason = tuple[int, str, str]
"""Status, problem and hint of a refusal."""

_STREAM = re.compile(r"/api/studies/[^/]+/events")
_FULL = 503, "too many requests are being answered", "try again in a second"
_MORE = {405: _ALLOWED, 503: {"retry-after": "1", "connection": "close"}}


class RequestMiddleware:
    """Middleware that checks every request, and refuses some, before it reaches any route.

    Args:
        app: the application that answers admitted requests.
        gate: the access rules for reading and changing.
        requests: the slots for requests that are answered at once.
        streams: the slots for event streams; a reader without a slot gets a single response.
    """

    def __init__(
        self, app: ASGIApp, gate: AccessRules, requests: ClientSlots, streams: ClientSlots
    ) -> None:
        self._app = app
        self._gate = gate
        self._requests = requests
        self._streams = streams

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request.

        Args:
            scope: the request.
            receive: yields the messages of the request, with its body.
            send: takes the messages of the response.
        """
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return
        answer = _SecureSender(send)
        reason = self._find_refusal(scope)
        try:
            body = b"" if reason else await _body(receive, Headers(scope=scope))
        except _Refused as refused:
            reason, body = refused.reason, b""
        if reason is None:
            reason = await self._admit(scope, _again(body, receive), answer)
        if reason is not None:
            response = refusal(scope["path"], *reason, headers=_MORE.get(reason[0]))
            await response(scope, receive, answer)

    async def _admit(self, scope: Scope, receive: Receive, answer: _SecureSender) -> _Reason | None:
        """Pass the request to the application, if the client has a free slot.

        The result is the reason for a refusal or failure; ``None`` if the request was answered.
        """
        streams = _STREAM.fullmatch(scope["path"]) is not None
        places, client = self._streams if streams else self._requests, client_of(scope["client"])
        if not places.enter(client):
            return await self._answer(scope, receive, answer) if streams else _FULL
        scope[PLACE] = True
        try:
            return await self._answer(scope, receive, answer)
        finally:
            del scope[PLACE]
            places.leave(client)

    async def _answer(
        self, scope: Scope, receive: Receive, answer: _SecureSender
    ) -> _Reason | None:
        try:
            await self._app(scope, receive, answer)
        except Exception:
            _log.exception("a request could not be answered")
            if answer.begun:
                raise
            return 500, "internal server error", "see the server's terminal for the cause"
        return None

    def _find_refusal(self, scope: Scope) -> _Reason | None:
        """Return status code, reason and hint if the request must be refused; else ``None``."""
        headers, path = Headers(scope=scope), scope["path"]
        host, token = headers.get("host", ""), headers.get("authorization", "")
        if not self._gate.knows_host(host):
            return 421, "this host name is not allowed", "allow it: dse serve --allow-host NAME"
        site = headers.get("sec-fetch-site")
        if scope["method"] not in _READING:
            origin = headers.get("origin")
            if not same_origin(host, origin, site):
                return 403, "a page of another origin cannot change anything here", ""
            if not self._gate.may_change(token):
                if scope["method"] != _CHANGING:  # no route accepts it, with or without a token
                    return 405, "this method is not allowed here", f"use {_CHANGING} or GET"
                return 401, "a change needs the token", _PRINTED
        elif site in _STRANGE and headers.get("sec-fetch-mode") != "navigate":
            return 403, "a page of another origin cannot read anything from here", ""
        elif not path.startswith(_FREE) and not self._gate.may_look(token, _cookie(headers)):
            return 401, "reading needs the token", _PRINTED
        return None


class _Refused(Exception):  # noqa: N818 - it becomes a response
    def __init__(self, status: int, problem: str, hint: str = "") -> None:
        super().__init__(problem)
        self.reason = status, problem, hint


async def _body(receive: Receive, headers: Headers) -> bytes:
    """Return the complete request body; refuse one that is too long or too slow to arrive."""
    length = headers.get("content-length", "0")
    if length.isdigit() and int(length) > BODY_BYTES:
        raise _too_long()
    body = bytearray()
    try:
        async with asyncio.timeout(BODY_S):
            while True:
                message = await receive()
                body += message.get("body", b"")
                if len(body) > BODY_BYTES:
                    raise _too_long()
                if not message.get("more_body", False):
                    return bytes(body)
    except TimeoutError:
        raise _Refused(408, f"the request took longer than {BODY_S:g} s to arrive") from None


def _too_long() -> _Refused:
    return _Refused(413, f"the request is longer than {BODY_BYTES} bytes")


def _again(body: bytes, receive: Receive) -> Receive:
    """Return an ASGI receiver that replays the request body, then yields client messages."""
    replayed_once = False

    async def replayed() -> Message:
        nonlocal replayed_once
        if replayed_once:
            return await receive()
        replayed_once = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replayed


class _SecureSender:
    """ASGI sender that adds the security headers and sends a long body in several messages."""

    def __init__(self, send: Send) -> None:
        self.begun = False
        self._send = send

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.begun = True
            headers = MutableHeaders(scope=message)
            for name, value in _HEADERS.items():
                headers.setdefault(name, value)
        for piece in _pieces(message):
            await self._send(piece)


def _pieces(message: Message) -> Iterator[Message]:
    """Yield the response message, split into several messages if its body is long."""
    body = message.get("body", b"")
    cut = max(len(body) - 1, 0) // PIECE_BYTES * PIECE_BYTES
    for at in range(0, cut, PIECE_BYTES):
        yield {"type": message["type"], "body": body[at : at + PIECE_BYTES], "more_body": True}
    yield {**message, "body": body[cut:]} if cut else message


def _cookie(headers: Headers) -> str:
    try:
        found = SimpleCookie(headers.get("cookie", "")).get(COOKIE)
    except CookieError:
        return ""
    return found.value if found else ""
