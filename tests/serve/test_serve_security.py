"""Who is refused: strangers, pages of elsewhere, wrong names, bodies too long or too slow."""

import json
import socket

import httpx2 as httpx
import pytest
from starlette.testclient import TestClient

from dse.errors import SpecErrors
from dse.serve.access import COOKIE, AccessRules, same_origin
from dse.serve.server import application
from dse.storage.memory import MemoryStorage
from dse.study.study_engine import StudyEngine

TOY = "/api/studies/toy%205"
HERE = "http://127.0.0.1:8321"


@pytest.fixture(scope="module")
def elsewhere(storage):
    """A server that is bound to every address, looked at from another machine."""
    gate = AccessRules.at("0.0.0.0", token="t" * 20, allowed=("dse.example",))
    with TestClient(application(storage, gate), base_url="http://dse.example") as made:
        yield made


def alive(client) -> bool:
    return client.get(TOY).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"authorization": "Bearer wrong"},
        {"authorization": "Bearer "},
        {"authorization": "Basic YTph"},
        {"authorization": "Bearer \xe9\xff".encode("latin-1")},
        {"cookie": f"{COOKIE}=a-token-that-nobody-guesses"},
    ],
)
@pytest.mark.parametrize("path", ["designs", "start", "pause", "anything"])
def test_nothing_is_changed_without_the_token(client, headers, path: str) -> None:
    answer = client.post(f"{TOY}/{path}", json={}, headers=headers)
    assert (answer.status_code, answer.json()["error"]) == (401, "a change needs the token")
    assert alive(client)


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": "http://127.0.0.1:9999"},
        {"origin": "http://127.0.0.1:8321.evil.example"},
        {"origin": "file://127.0.0.1:8321"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site", "origin": HERE},
    ],
)
def test_a_page_of_elsewhere_changes_nothing_even_with_the_token(client, writer, headers) -> None:
    answer = client.post(f"{TOY}/pause", headers={**writer, **headers})
    assert answer.status_code == 403
    assert alive(client)


@pytest.mark.parametrize("mode", ["cors", "no-cors"])
def test_a_page_of_elsewhere_takes_nothing_and_may_have_a_link(client, mode: str) -> None:
    there = {"sec-fetch-site": "cross-site"}
    assert client.get(TOY, headers={**there, "sec-fetch-mode": mode}).status_code == 403
    assert client.get("/", headers={**there, "sec-fetch-mode": "navigate"}).status_code == 200


class Broken(MemoryStorage):
    """A storage with a mistake that nobody thought of."""

    def studies(self):
        raise RuntimeError("secret")


@pytest.mark.parametrize("path", ["/", "/api/studies"])
def test_a_mistake_of_ours_is_told_without_its_inside_and_under_the_policy(local, path) -> None:
    app = application(Broken(), local)
    with TestClient(app, base_url=HERE, raise_server_exceptions=False) as client:
        answer = client.get(path)
        after = client.get("/login")
    assert (answer.status_code, after.status_code) == (500, 200)
    assert "secret" not in answer.text
    assert answer.headers["content-security-policy"].startswith("default-src 'none'")


def test_a_page_of_here_may_change_things(client, writer) -> None:
    headers = {**writer, "origin": HERE, "sec-fetch-site": "same-origin"}
    assert client.post(f"{TOY}/pause", headers=headers).status_code == 409  # nobody runs it


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example", "", "127.0.0.1@evil", "[::1", "10.0.0.1"]
)
def test_a_name_that_was_made_to_mean_this_machine_is_refused(client, host: str) -> None:
    assert client.get("/", headers={"host": host}).status_code == 421
    assert alive(client)


@pytest.mark.parametrize("host", ["localhost:1", "127.0.0.1", "[::1]:8321", "LOCALHOST"])
def test_this_machine_is_called_by_its_own_names(client, host: str) -> None:
    assert client.get("/", headers={"host": host}).status_code == 200


@pytest.mark.parametrize("path", ["/", TOY, "/studies/toy%205", "/compare", "/api/openapi.json"])
def test_from_elsewhere_nothing_is_seen_without_the_token(elsewhere, path: str) -> None:
    assert elsewhere.get(path).status_code == 401
    assert elsewhere.get(path, headers={"authorization": "Bearer t"}).status_code == 401
    assert elsewhere.get(path, headers={"authorization": f"Bearer {'t' * 20}"}).status_code == 200


def test_the_cookie_lets_look_and_does_not_let_change(elsewhere) -> None:
    token = {"authorization": f"Bearer {'t' * 20}"}
    given = elsewhere.post("/api/session", headers=token).headers["set-cookie"]
    assert "HttpOnly" in given
    assert "SameSite=strict" in given
    assert "t" * 20 not in given
    cookie = {"cookie": given.partition(";")[0]}
    elsewhere.cookies.clear()
    assert elsewhere.get("/", headers=cookie).status_code == 200
    assert elsewhere.post(f"{TOY}/pause", headers=cookie).status_code == 401


def test_the_page_that_asks_for_the_token_is_seen_by_all(elsewhere) -> None:
    assert elsewhere.get("/login").status_code == 200
    assert elsewhere.get("/assets/login.js").status_code == 200


def test_from_elsewhere_any_address_is_called_but_no_strange_name() -> None:
    gate = AccessRules.at("0.0.0.0")
    assert gate.knows_host("192.168.1.7:8321")
    assert not gate.knows_host("evil.example:8321")
    assert len(gate.token) >= 32


def test_a_program_without_an_origin_is_of_no_other_origin() -> None:
    assert same_origin("127.0.0.1:1", None, None)


def test_a_body_that_says_it_is_too_long_is_refused(client, writer) -> None:
    answer = client.post(f"{TOY}/designs", content=b"x" * 65_537, headers=writer)
    assert (answer.status_code, answer.headers["content-type"]) == (413, "application/json")
    assert alive(client)


def test_a_body_that_does_not_say_how_long_it_is_is_cut_off(client, writer) -> None:
    pieces = (b"x" * 1_000 for _ in range(100))
    answer = client.post(f"{TOY}/designs", content=pieces, headers=writer)
    assert answer.status_code == 413
    assert alive(client)


@pytest.mark.parametrize(
    "values",
    [
        {"a": 1e999, "b": 8, "mode": "slow"},
        {"a": 10**300, "b": 8, "mode": "slow"},
        {"a": "8; rm -rf /", "b": 8, "mode": "slow"},
        {"a": True, "b": 8, "mode": "slow"},
        {"__class__": 1},
        {"<script>": "<script>"},
        {"x" * 1_000: "y" * 1_000},
        {},
    ],
)
def test_a_senseless_design_is_not_legal_and_does_no_harm(client, writer, values) -> None:
    body = json.dumps({"values": values}).encode()
    headers = {**writer, "content-type": "application/json"}
    answer = client.post(f"{TOY}/designs", content=body, headers=headers)
    assert answer.status_code in (200, 422)
    assert answer.json().get("legal", False) is False
    assert alive(client)


@pytest.mark.parametrize(
    "path",
    [
        "/assets/..%2f..%2fpyproject.toml",
        "/assets/../app.py",
        "/assets/%2e%2e/app.py",
        "/assets/..%5capp.py",
        "/studies/..%2f..%2fetc%2fpasswd/download/study.jsonl",
        "/studies/toy%205/download/..%2f..%2fapp.py",
        "/studies/%2fetc%2fpasswd/report",
        "/studies/a%00b",
        "/assets/%252e%252e%252fapp.py",
        "/assets//etc/passwd",
        "/assets/%2fetc%2fpasswd",
        "/assets/shared.js%00.css",
        "/assets/....//app.py",
        "/assets/..%c0%afapp.py",
        "/assets/C:%5cWindows%5cwin.ini",
        "/studies/toy%205/download/%252e%252e%252fapp.py",
        "/studies/toy%205/download/study.jsonl%00",
        "/studies/..%5c..%5cpyproject.toml",
        "/studies/%252e%252e%252fetc%252fpasswd",
        "/api/studies/..%2f..%2fapp.py/front",
        "/api/studies/sqlite:%2f%2f%2fother.db",
    ],
)
def test_no_path_leads_to_a_file(client, path: str) -> None:
    answer = client.get(path)
    assert answer.status_code == 404
    assert "import" not in answer.text
    assert alive(client)


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "BREW"])
def test_a_method_that_no_route_takes_is_refused_with_the_token_and_without(
    client, writer, method: str
) -> None:
    refused = client.request(method, TOY)
    assert (refused.status_code, refused.headers["allow"]) == (405, "GET, HEAD, POST")
    assert client.request(method, TOY, headers=writer).status_code == 405
    elsewhere = {"origin": "https://evil.example"}
    assert client.request(method, TOY, headers=elsewhere).status_code == 403


@pytest.mark.parametrize("method", ["OPTIONS", "TRACE", "QUERY"])
def test_what_only_asks_gets_no_more_than_what_can_be_asked(client, method: str) -> None:
    answer = client.request(method, TOY, headers={"cookie": "secret", "origin": HERE})
    assert (answer.status_code, answer.headers["allow"]) == (405, "GET")
    assert "secret" not in f"{answer.text}{answer.headers}"
    assert "access-control-allow-origin" not in answer.headers


@pytest.mark.parametrize("name", ["<script>alert(1)</script>", "\"' onmouseover='alert(2)"])
def test_a_hostile_name_stands_as_text_in_the_list(client, name: str) -> None:
    from html import escape

    page = client.get("/").text
    assert name not in page
    assert escape(name) in page


@pytest.mark.parametrize("metric", ["<b>x</b>", "x'", "x" * 900 + "<"])
def test_a_hostile_metric_name_never_gets_into_a_study(folder, tmp_path, metric: str) -> None:
    text = (folder / "measured.yaml").read_text().replace("power: W", f"{json.dumps(metric)}: W")
    (tmp_path / "space.yaml").write_text((folder / "space.yaml").read_text())
    (tmp_path / "study.yaml").write_text(text)
    with pytest.raises(SpecErrors, match="cannot be called"):
        StudyEngine.open(tmp_path / "study.yaml", storage=MemoryStorage())


def test_a_name_of_ten_thousand_letters_is_shown_and_not_looked_up(client) -> None:
    assert "x" * 10_000 in client.get("/").text
    assert client.get(f"/api/studies/{'x' * 10_000}").status_code == 422
    assert len(client.get(f"/studies/{'y' * 10_000}").text) < 5_000


def test_clients_that_say_nothing_or_slowly_are_left(
    storage, local, server_at, monkeypatch
) -> None:
    monkeypatch.setattr("dse.serve.idle_timeout.HEAD_S", 2.0)
    monkeypatch.setattr("dse.serve.middleware.BODY_S", 0.3)
    with server_at(storage, local) as address:
        host, port = address.removeprefix("http://").split(":")
        with (
            socket.create_connection((host, int(port))) as silent,
            socket.create_connection((host, int(port))) as slow,
        ):
            head = (
                f"POST {TOY}/pause HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {local.token}"
            )
            slow.sendall(f"{head}\r\nContent-Length: 10\r\n\r\n".encode())
            silent.settimeout(300)
            slow.settimeout(300)
            assert silent.recv(100) == b""
            assert slow.recv(100).startswith(b"HTTP/1.1 408 ")
        monkeypatch.setattr("dse.serve.idle_timeout.HEAD_S", 300.0)
        assert httpx.get(f"{address}{TOY}", timeout=300).status_code == 200


def test_a_request_with_endless_headers_is_refused(storage, local, server_at) -> None:
    with server_at(storage, local) as address:
        host, port = address.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port))) as talker:
            talker.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Long: " + b"x" * 100_000)
            talker.settimeout(300)
            assert b" 4" in talker.recv(20)
        assert httpx.get(f"{address}/", timeout=300).status_code == 200
