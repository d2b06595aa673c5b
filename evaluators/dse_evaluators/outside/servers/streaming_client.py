"""Client of the OpenAI completions interface that times the tokens of streamed answers."""

from __future__ import annotations

import http.client
import json
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from dse_evaluators.outside.servers.request_draws import ServedRequest

_SHOWN = 300
"""Number of characters of a server's answer that an error quotes."""


class RequestError(Exception):
    """Raised if a server refuses a request, or its answer is not a stream of completions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """Times of an answered request, in seconds on a monotonic clock, and its token counts."""

    sent_s: float
    first_s: float
    last_s: float
    prompt_tokens: int
    output_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """Address of an OpenAI-compatible server, such as ``http://127.0.0.1:8000``.

    ``headers`` may hold a credential, so they are not part of the text of the object.
    """

    url: str
    model: str
    headers: tuple[tuple[str, str], ...] = ()

    def __repr__(self) -> str:
        return f"Endpoint({self.url!r}, {self.model!r})"

    def connect(self, timeout_s: float) -> http.client.HTTPConnection:
        """Return a connection that is opened by its first request."""
        parts = urlsplit(self.url)
        kind = http.client.HTTPSConnection if parts.scheme == "https" else None
        assert parts.hostname is not None
        return (kind or http.client.HTTPConnection)(
            parts.hostname, parts.port, timeout=max(timeout_s, 1e-3)
        )

    def path(self, name: str) -> str:
        """Return the path of an interface of the server, such as ``/v1/completions``."""
        return f"{urlsplit(self.url).path.rstrip('/')}/{name}"


def send_all(
    endpoint: Endpoint,
    requests: Sequence[ServedRequest],
    *,
    clients: int,
    arrivals_s: Sequence[float] | None,
    deadline: float,
) -> list[Answered]:
    """Send requests from concurrent clients; return the times of each, in order of requests.

    Args:
        endpoint: the server.
        requests: n requests; a client sends the next one as soon as its last one is answered.
        clients: number of concurrent clients, at least one.
        arrivals_s: times (n,) at which requests arrive, in seconds from the start; a request waits
            for its arrival, and then for a free client. The wait for a client is part of its
            latency.
        deadline: time on the monotonic clock at which all answers must be complete.

    Raises:
        RequestError: an answer is an error or not a stream of completions.
        TimeoutError: the deadline passed.
        OSError: the connection failed.
    """
    start = time.monotonic()

    def send(number: int) -> Answered:
        due = start + arrivals_s[number] if arrivals_s is not None else None
        if due is not None:
            time.sleep(max(0.0, min(due, deadline) - time.monotonic()))
        return send_one(endpoint, requests[number], deadline, due)

    answers: dict[int, Answered] = {}
    errors: list[Exception] = []
    queue = deque(range(len(requests)))
    each = (send, queue, answers, errors)
    threads = [
        threading.Thread(target=_take_requests, args=each, daemon=True) for _ in range(clients)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return [answers[number] for number in range(len(requests))]


def send_one(
    endpoint: Endpoint, request: ServedRequest, deadline: float, due_s: float | None = None
) -> Answered:
    """Send one request and return its times, measured from ``due_s`` if that is given.

    Raises:
        RequestError: the answer is an error or not a stream of completions.
        TimeoutError: the deadline passed.
        OSError: the connection failed.
    """
    body = {
        "model": endpoint.model,
        "prompt": list(request.prompt),
        "max_tokens": request.output_tokens,
        "temperature": 0,
        "ignore_eos": True,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    connection = endpoint.connect(deadline - time.monotonic())
    try:
        sent = time.monotonic()
        connection.request(
            "POST",
            endpoint.path("v1/completions"),
            json.dumps(body),
            {"Content-Type": "application/json", **dict(endpoint.headers)},
        )
        with connection.getresponse() as answer:
            if answer.status != http.HTTPStatus.OK:
                text = answer.read(_SHOWN).decode(errors="replace")
                raise RequestError(f"the server answered with status {answer.status}: {text}")
            return _read_stream(answer, request, sent if due_s is None else due_s, deadline)
    finally:
        connection.close()


def list_models(endpoint: Endpoint, timeout_s: float) -> list[str]:
    """Return the names of the models that a server lists, at least one.

    Raises:
        OSError: the connection failed or took too long.
        ValueError: the answer is no list of models.
    """
    connection = endpoint.connect(timeout_s)
    try:
        connection.request("GET", endpoint.path("v1/models"), headers=dict(endpoint.headers))
        with connection.getresponse() as answer:
            text = answer.read(1 << 20).decode(errors="replace")
        if answer.status != http.HTTPStatus.OK:
            raise ValueError(f"status {answer.status}: {text[:_SHOWN]}")
        names = [str(one["id"]) for one in json.loads(text)["data"]]
    except (http.client.HTTPException, KeyError, TypeError) as error:
        raise ValueError(f"the answer is no list of models: {error!r}") from error
    finally:
        connection.close()
    if not names:
        raise ValueError("the list is empty")
    return names


def _read_stream(
    answer: http.client.HTTPResponse, request: ServedRequest, sent_s: float, deadline: float
) -> Answered:
    times: list[float] = []
    usage: dict[str, Any] = {}
    for line in answer:
        now = time.monotonic()
        if now > deadline:
            raise TimeoutError
        text = line.decode(errors="replace").strip()
        if not text.startswith("data:") or text == "data: [DONE]":
            if text and text[0] not in ":dei":  # comments, data, event and id are lines of SSE
                raise RequestError(f"the answer is no stream of events: {text[:_SHOWN]!r}")
            continue
        event = _event(text.removeprefix("data:"))
        usage = event.get("usage") or usage
        if event.get("choices"):
            times.append(now)
    if not times:
        raise RequestError("the stream ended without a token")
    return Answered(
        sent_s=sent_s,
        first_s=times[0],
        last_s=times[-1],
        prompt_tokens=_count(usage, "prompt_tokens", len(request.prompt)),
        output_tokens=_count(usage, "completion_tokens", len(times)),
    )


def _event(text: str) -> dict[str, Any]:
    try:
        event = json.loads(text)
    except ValueError:
        event = None
    if not isinstance(event, dict):
        raise RequestError(f"an event is no JSON object: {text[:_SHOWN]!r}")
    if "error" in event:
        raise RequestError(f"the server reports an error: {str(event['error'])[:_SHOWN]}")
    return event


def _count(usage: Any, name: str, otherwise: int) -> int:
    count = usage.get(name) if isinstance(usage, dict) else None
    return count if isinstance(count, int) and count > 0 else otherwise


def _take_requests(
    send: Callable[[int], Answered],
    queue: deque[int],
    answers: dict[int, Answered],
    errors: list[Exception],
) -> None:
    """Send requests of a queue until it is empty, or until a client has an error."""
    while queue and not errors:
        try:
            number = queue.popleft()
        except IndexError:  # another client took the last one
            return
        try:
            answers[number] = send(number)
        except http.client.HTTPException as error:
            errors.append(OSError(repr(error)))
        except Exception as error:  # noqa: BLE001 - the thread that waits raises it
            errors.append(error)
