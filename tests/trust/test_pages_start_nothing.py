"""Every page and every GET of the live view, on a stranger's study: nothing is started or connected to."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterator
from typing import Any

import pytest
from starlette.testclient import TestClient

from dse.serve.access import AccessRules
from dse.serve.downloads import _TAKEN
from dse.serve.server import application
from dse.serve.server_sent_events import Listeners
from dse.study.storage_access import opened_storage
from dse.testing.evaluator_contract import traced

TOKEN = "a-token-that-nobody-guesses"
WRITER = {"authorization": f"Bearer {TOKEN}"}
STREAM = "/api/studies/{name}/events"

LOOKING: dict[str, list[str]] = {
    "/api/studies": ["/api/studies"],
    "/api/studies/{name}": ["/api/studies/theirs", "/api/studies/modelled"],
    "/api/studies/{name}/front": ["/api/studies/theirs/front"],
    "/api/studies/{name}/figures": ["/api/studies/theirs/figures", "/api/studies/modelled/figures"],
    "/api/studies/{name}/trials": ["/api/studies/theirs/trials"],
    "/api/studies/{name}/trials/{number}": ["/api/studies/theirs/trials/0"],
    "/api/openapi.json": ["/api/openapi.json"],
    "/": ["/"],
    "/studies/{name}": ["/studies/theirs", "/studies/modelled"],
    "/studies/{name}/parts": ["/studies/theirs/parts"],
    "/studies/{name}/trials": ["/studies/theirs/trials"],
    "/studies/{name}/trials/{number}": ["/studies/theirs/trials/0"],
    "/studies/{name}/design": ["/studies/theirs/design"],
    "/studies/{name}/download/{kind}": [f"/studies/theirs/download/{kind}" for kind in _TAKEN],
    "/studies/{name}/report": ["/studies/theirs/report", "/studies/modelled/report"],
    "/compare": ["/compare?study=theirs&study=second"],
    "/compare/report": ["/compare/report?study=theirs&study=second&joint=1"],
    "/login": ["/login"],
    "/assets/{name}": ["/assets/live.js"],
}
"""What each route of GET is asked for; each answers 200."""

CHANGING: dict[str, list[tuple[str, dict[str, Any], int]]] = {
    "/api/studies/{name}/start": [("/api/studies/theirs/start", {}, 409)],
    "/api/studies/{name}/pause": [("/api/studies/theirs/pause", {}, 409)],
    "/api/studies/{name}/designs": [
        ("/api/studies/theirs/designs", {"values": {"a": 1, "b": 1}}, 200),
        ("/api/studies/theirs/designs", {"values": {"a": 1, "b": 1}, "action": "evaluate"}, 409),
        ("/api/studies/theirs/designs", {"values": {"a": 6, "b": 4}, "action": "add"}, 200),
    ],
    "/api/session": [("/api/session", {}, 204)],
}
"""What each route of POST is sent, with the status that answers."""


@pytest.fixture
def client(victim) -> Iterator[TestClient]:
    app = application(opened_storage("sqlite:///dse.db"), AccessRules(token=TOKEN))
    with TestClient(app, base_url="http://127.0.0.1:8321") as made:
        yield made


def methods_of(router: Any) -> dict[str, set[str]]:
    """The methods by the path of each route, those of included routers too."""
    found: dict[str, set[str]] = {}
    for route in router.routes:
        inner = getattr(route, "original_router", None)
        own = {route.path: set(route.methods)} if inner is None else methods_of(inner)
        for path, methods in own.items():
            found.setdefault(path, set()).update(methods)
    return found


def test_every_route_is_asked(client):
    found = methods_of(client.app)
    assert {path for path, methods in found.items() if "GET" in methods} == {*LOOKING, STREAM}
    assert {path for path, methods in found.items() if methods - {"GET", "HEAD"}} == set(CHANGING)


@pytest.mark.parametrize("route", LOOKING)
def test_a_page_starts_nothing(client, victim, route):
    with traced(victim.code) as found:
        answers = [client.get(path) for path in LOOKING[route]]
    assert [one.status_code for one in answers] == [200] * len(answers), answers[0].text
    assert found == []
    assert victim.left == []


async def first_two(told: AsyncGenerator[bytes, None]) -> bytes:
    said = await anext(told) + await anext(told)
    await told.aclose()
    return said


def test_the_stream_of_events_starts_nothing(client, victim):
    house = client.app.state.house
    with traced(victim.code) as found:
        said = asyncio.run(first_two(Listeners().stream(house.watch, house.runners, "theirs")))
    assert b"event: state" in said
    assert found == []
    assert victim.left == []


@pytest.mark.parametrize("route", CHANGING)
def test_a_change_of_an_imported_study_starts_nothing(client, victim, route):
    with traced(victim.code) as found:
        answers = [
            (client.post(path, json=told, headers=WRITER), status)
            for path, told, status in CHANGING[route]
        ]
    assert [one.status_code for one, _ in answers] == [status for _, status in answers]
    assert found == []
    assert victim.left == []


def test_what_is_refused_says_how_to_trust(client):
    (path, told, _), *_ = CHANGING["/api/studies/{name}/start"]
    answer = client.post(path, json=told, headers=WRITER).json()
    assert "is not trusted" in answer["error"]
    assert "dse studies trust theirs" in answer["hint"]


def test_the_page_of_a_study_says_that_it_is_not_trusted(client):
    assert "dse studies trust theirs" in client.get("/studies/theirs").text


def test_a_report_says_which_models_were_not_called(client):
    assert "is only computed where the study runs" in client.get("/studies/modelled/report").text
