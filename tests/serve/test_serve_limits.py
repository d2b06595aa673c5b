"""Limits per kind of connection: idle ones, event streams and requests leave room for others."""

import json
import resource
import socket
from collections.abc import Iterator
from contextlib import ExitStack

import httpx2 as httpx
import pytest

from dse.schema.study.budget import Budget
from dse.serve import idle_timeout as patience
from dse.serve.connection_limits import (
    CONNECTIONS,
    STREAMS,
    ClientSlots,
    client_of,
    compute_connection_limit,
)
from dse.storage.memory import MemoryStorage
from dse.study.study_engine import StudyEngine
from tests.browsing import soon

TOY = "/api/studies/toy"
FLOOD, READERS = 600, 500


@pytest.fixture(scope="module", autouse=True)
def _files() -> Iterator[None]:
    """Room for both ends of some 1,300 connections in this process."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, 8_192)), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.fixture
def study(folder) -> StudyEngine:
    made = StudyEngine.open(folder / "toy.yaml", storage=MemoryStorage())
    made.run(budget=Budget(trials=10))
    return made


def connected(address: str) -> socket.socket:
    host, port = address.removeprefix("http://").split(":")
    return socket.create_connection((host, int(port)), timeout=300)


def request(path: str, *headers: str) -> bytes:
    return "\r\n".join([f"GET {path} HTTP/1.1", "Host: 127.0.0.1", *headers, "", ""]).encode()


def first_event(reader: socket.socket) -> tuple[dict, bool]:
    """The state that an event reader receives first, and whether it is told to poll."""
    text = b""
    while (text.count(b"\n\n") < 2 or b"event: state" not in text) and (
        more := reader.recv(65_536)
    ):
        text += more
    state = next(part for part in text.split(b"\n\n") if b"event: state" in part)
    while b"retry: 2000" not in text and (more := reader.recv(65_536)):  # a poll is answered whole
        text += more
    data = state.partition(b"data: ")[2].splitlines()[0]
    return json.loads(data), b"event: busy" in text


def grown_poll(address: str) -> bool:
    """Ask for the events once; a page may be younger than what a moment ago was read for all."""
    with connected(address) as reader:
        reader.sendall(request(f"{TOY}/events"))
        state, polls = first_event(reader)
    return state["finished"] == 20 and polls


ASSET = request("/assets/live.css")


@pytest.mark.parametrize(
    "sent",
    [b"", b"GET / HT", ASSET, request(TOY, "Content-Length: 9") + b"x"],
    ids=["silent", "half a head", "answered and kept open", "half a body"],
)
def test_a_flood_of_idle_connections_leaves_the_server_to_others(
    study, local, server_at, monkeypatch, sent: bytes
) -> None:
    monkeypatch.setattr(patience, "HEAD_S", 300.0)  # nothing is dropped for being late
    monkeypatch.setattr("dse.serve.middleware.BODY_S", 300.0)
    with server_at(study.storage, local) as address, ExitStack() as flood:
        for _ in range(FLOOD):
            one = flood.enter_context(connected(address))
            one.sendall(sent)
            assert sent != ASSET or one.recv(12) == b"HTTP/1.1 200"
        answers = [httpx.get(f"{address}{TOY}", timeout=300).status_code for _ in range(3)]
    assert FLOOD > CONNECTIONS
    assert answers == [200, 200, 200]


def test_readers_beyond_the_limit_poll_and_see_the_study_grow(study, local, server_at) -> None:
    with server_at(study.storage, local) as address, ExitStack() as kept:
        readers = [kept.enter_context(connected(address)) for _ in range(READERS)]
        for reader in readers:
            reader.sendall(request(f"{TOY}/events"))
        told = [first_event(reader) for reader in readers]
        page = httpx.get(f"{address}/studies/toy", timeout=300).status_code
        polls = [reader for reader, (_, polls) in zip(readers, told, strict=True) if polls]
        ended = [reader.recv(1) for reader in polls]
        study.run(budget=Budget(trials=20))
        grown = [soon(address, grown_poll) for _ in polls]
    assert page == 200
    assert {state["finished"] for state, _ in told} == {10}
    assert len(polls) == READERS - STREAMS // 2  # one address takes at most half of the places
    assert set(ended) == {b""}  # a poll leaves no connection open
    assert grown == [True] * len(polls)


def test_one_client_leaves_places_to_others() -> None:
    places = ClientSlots(64)
    first = sum(places.enter("10.0.0.1") for _ in range(200))
    second = sum(places.enter("10.0.0.2") for _ in range(200))
    third = places.enter("10.0.0.3")
    for _ in range(first):
        places.leave("10.0.0.1")
    alone = sum(places.enter("10.0.0.2") for _ in range(200))
    assert (first, second, third) == (32, 16, True)
    assert second + alone == (64 - 1) // 2 + 1


@pytest.mark.parametrize(
    ("address", "client"),
    [
        ("10.0.0.7", "10.0.0.7"),
        ("2001:db8:1:2:aaaa::1", "2001:db8:1:2::/64"),
        ("2001:db8:1:2:bbbb::9", "2001:db8:1:2::/64"),
        ("::ffff:10.0.0.7", "10.0.0.7"),
        ("::1", "::1"),
        ("testclient", "testclient"),
    ],
)
def test_a_network_of_one_customer_is_one_client(address: str, client: str) -> None:
    assert client_of((address, 5)) == client


def test_requests_beyond_the_limit_are_told_when_to_come_again(study, local, monkeypatch) -> None:
    from starlette.testclient import TestClient

    from dse.serve.server import application

    app = application(study.storage, local)
    with TestClient(app, base_url="http://127.0.0.1") as client:
        requests = app.state.house.requests
        while requests.enter("testclient"):
            pass
        answer = client.get(TOY)
        requests.leave("testclient")
        after = client.get(TOY)
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
    assert answer.json()["hint"]
    assert after.status_code == 200


@pytest.mark.parametrize(
    ("files", "allowed"), [(20_000, CONNECTIONS), (1_024, CONNECTIONS), (256, 128)]
)
def test_connections_leave_files_for_the_rest_of_the_process(monkeypatch, files, allowed) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (files, files))
    assert compute_connection_limit() == allowed


@pytest.mark.browser
@pytest.mark.slow
def test_a_page_without_a_stream_polls_and_shows_the_study_grow(
    browser, study, local, server_at, monkeypatch
) -> None:
    monkeypatch.setattr("dse.serve.context.STREAMS", 0)
    monkeypatch.setattr("dse.serve.server_sent_events.POLL_MS", 100)
    with server_at(study.storage, local) as address:
        browser.get(f"{address}/studies/toy")
        soon(browser, lambda d: "paused 10 of 60" in d.title)
        study.run(budget=Budget(trials=20))
        soon(browser, lambda d: "paused 20 of 60" in d.title)
        banner = browser.execute_script("return document.querySelector('#banner').textContent")
        browser.get("about:blank")
    assert banner == ""
