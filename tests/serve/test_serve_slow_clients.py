"""Clients that are slow, many or senseless, at a real socket: left or answered, the server alive."""

import re
import select
import socket
import threading
import time
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import httpx2 as httpx
import pytest

from dse.core.metric import Failure
from dse.core.trial import Outcome, State
from dse.serve import cached_value as looks
from dse.serve import idle_timeout as patience
from dse.serve import middleware as door
from dse.serve import server_sent_events
from dse.storage.memory import MemoryStorage
from dse.study.study_engine import StudyEngine

TOY = "/api/studies/toy%205"


@pytest.fixture
def hasty(monkeypatch) -> None:
    """A server whose patience ends after parts of a second."""
    monkeypatch.setattr(patience, "HEAD_S", 0.4)
    monkeypatch.setattr(patience, "SEND_S", 0.4)
    monkeypatch.setattr(door, "BODY_S", 0.4)


def connected(address: str, *, buffer: int | None = None) -> socket.socket:
    """A connection; with a small ``buffer`` the server soon cannot send on."""
    host, port = address.removeprefix("http://").split(":")
    made = socket.socket()
    if buffer is not None:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
    made.settimeout(300)
    made.connect((host, int(port)))
    return made


def asked(path: str, *lines: str, method: str = "GET") -> bytes:
    return "\r\n".join([f"{method} {path} HTTP/1.1", "Host: 127.0.0.1", *lines, "", ""]).encode()


def until_dropped(talker: socket.socket, most_s: float = 300) -> None:
    """Wait until the other side ends the connection, of which nothing is read meanwhile."""
    watch = select.poll()
    watch.register(talker, select.POLLERR | select.POLLHUP | select.POLLRDHUP)
    assert watch.poll(1000 * most_s), "it is still there"


def held(talker: socket.socket) -> bool:
    """True while the other side keeps the connection."""
    watch = select.poll()
    watch.register(talker, select.POLLERR | select.POLLHUP | select.POLLRDHUP)
    return not watch.poll(0)


def alive(address: str) -> bool:
    """True if the server answers; how soon is the machine's affair."""
    for _ in range(20):
        with suppress(httpx.TransportError):  # on a busy machine we may be slow ourselves
            return httpx.get(f"{address}{TOY}", timeout=300).status_code == 200
    return False


def said_until_dropped(talker: socket.socket, words: bytes, *, every_s: float) -> int:
    """How many bytes of the words, said one by one, there was somebody to hear."""
    for place in range(len(words)):
        try:
            talker.sendall(words[place : place + 1])
        except OSError:
            return place
        time.sleep(every_s)
    return len(words)


def resident_mib() -> float:
    text = Path("/proc/self/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+)", text)[1]) / 1024


@contextmanager
def failing(storage: MemoryStorage, name: str, every_s: float):
    """A study that grows by trials that fail for long reasons, so that each state is long."""
    over = threading.Event()

    def grow() -> None:
        design = storage.trials("toy 5")[0].design
        while not over.wait(every_s):
            (trial,) = storage.add(name, [design])
            failure = Failure(kind="raised", reason=f"{trial.number} {'why ' * 500}")
            storage.finish(name, {trial.number: Outcome(state=State.FAILED, failure=failure)})

    thread = threading.Thread(target=grow)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


@pytest.mark.parametrize(
    "path", ["/assets/plotly.js", "/compare/report?study=toy%205&study=toy%206"]
)
def test_a_reader_who_takes_nothing_is_dropped(address, hasty, path) -> None:
    with connected(address, buffer=4096) as reader:
        reader.sendall(asked(path))
        until_dropped(reader)
        assert alive(address)


def test_a_slow_reader_who_goes_on_reading_gets_everything(address, monkeypatch) -> None:
    monkeypatch.setattr(patience, "HEAD_S", 1.0)
    monkeypatch.setattr(patience, "SEND_S", 2.0)
    with connected(address, buffer=16_384) as reader:
        reader.sendall(asked("/assets/plotly.js"))
        head, _, taken = reader.recv(4096).partition(b"\r\n\r\n")
        length = int(re.search(rb"content-length: (\d+)", head)[1])
        read = len(taken)
        while read < length and (piece := reader.recv(65_536)):
            read += len(piece)
            time.sleep(0.01)
    assert read == length


def test_a_listener_who_takes_nothing_is_dropped_while_the_study_grows(
    folder, storage, address, hasty, monkeypatch
) -> None:
    monkeypatch.setattr(server_sent_events, "LOOK_S", 0.01)
    monkeypatch.setattr(looks, "YOUNG_S", 0.0)
    StudyEngine.open(folder / "toy.yaml", name="grows", storage=storage)
    with (
        failing(storage, "grows", 0.02),
        connected(address, buffer=4096) as listener,
    ):
        listener.sendall(asked("/api/studies/grows/events"))
        until_dropped(listener)
        assert alive(address)
    storage.delete("grows")


@pytest.mark.parametrize("piece", [b"G", b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n", b"\r\n"])
def test_a_head_that_comes_byte_by_byte_is_not_waited_for(address, hasty, piece: bytes) -> None:
    with connected(address) as talker:
        talker.sendall(piece)
        said = said_until_dropped(talker, b"x" * 2_000, every_s=0.05)
        assert said < 2_000
        assert alive(address)


@pytest.mark.parametrize(
    "lines",
    [["Content-Length: 60000"], ["Transfer-Encoding: chunked"]],
    ids=["of a length", "in chunks"],
)
def test_a_body_that_comes_byte_by_byte_is_not_waited_for(
    address, local, hasty, monkeypatch, lines
) -> None:
    piece = b"x" if "Length" in lines[0] else b"1\r\nx\r\n"
    token = f"Authorization: Bearer {local.token}"
    monkeypatch.setattr(patience, "HEAD_S", 300.0)  # the head is sent, however late
    with connected(address) as talker:
        talker.sendall(asked(f"{TOY}/designs", token, *lines, method="POST"))
        answer, begun = b"", time.monotonic()
        while not answer and time.monotonic() - begun < 300:
            talker.sendall(piece)
            if select.select([talker], [], [], 0.05)[0]:
                answer = talker.recv(4096)
        assert answer.startswith(b"HTTP/1.1 408 ")
        assert alive(address)


@pytest.mark.parametrize(
    ("lines", "body", "statuses"),
    [
        (["Content-Length: 5"], b'{"values": {}} and more', {b"422", b"400"}),
        (["Content-Length: 5", "Content-Length: 7"], b"{}", {b"400"}),
        (["Content-Length: -1"], b"{}", {b"400"}),
        (["Content-Length: 1e3"], b"{}", {b"400"}),
        (["Content-Length: 99999999999999999999"], b"{}", {b"400", b"413"}),
        (
            ["Content-Length: 3", "Transfer-Encoding: chunked"],
            b"2\r\n{}\r\n0\r\n\r\n",
            {b"400", b"422"},
        ),
        (["Transfer-Encoding: chunked"], b"zz\r\n{}\r\n", {b"400"}),
        (["Transfer-Encoding: chunked"], b"%x\r\n%b" % (70_000, b"x" * 70_000), {b"413"}),
        (["Transfer-Encoding: gzip, chunked"], b"2\r\n{}\r\n0\r\n\r\n", {b"400", b"501"}),
        (["Content-Length: 200000"], b"x" * 200_000, {b"413"}),
    ],
)
def test_a_body_of_another_length_than_told_is_refused(
    address, local, lines, body: bytes, statuses
) -> None:
    token = f"Authorization: Bearer {local.token}"
    kind = "Content-Type: application/json"
    with connected(address) as talker:
        talker.sendall(asked(f"{TOY}/designs", token, kind, *lines, method="POST"))
        talker.sendall(body)
        assert talker.recv(4096).split()[1] in statuses
        assert alive(address)


@pytest.mark.parametrize(
    "sent",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(200),  # TLS
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET / HTTP/1.1\r\n\r\n",  # no host
        b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nHost: evil.example\r\n\r\n",
        b"GET /\x00\x01 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
        b"GET http://evil.example/ HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX: a\r\n b\r\nBad Header\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"CONNECT evil.example:443 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n\xff\xfe garbage \r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX: " + b"x" * 100_000,
        asked(TOY) * 50,
        asked(TOY) * 20 + b"GARBAGE\r\n\r\n" + asked(TOY),
    ],
)
def test_what_is_no_request_does_no_harm(address, sent: bytes) -> None:
    with connected(address) as talker:
        talker.sendall(sent)
        answer = talker.recv(20)
        assert answer.startswith(b"HTTP/1.1 ")
        assert b" 500" not in answer
        assert alive(address)


def test_a_wrong_token_is_neither_told_nor_kept(storage, local, server_at, capfd, caplog) -> None:
    wrong = "a-wrong-token-of-somebody"
    with server_at(storage, local) as address:
        headers = {"authorization": f"Bearer {wrong}"}
        answers = [
            httpx.post(f"{address}{TOY}/pause", headers=headers, timeout=300),
            httpx.post(f"{address}/api/session", headers=headers, timeout=300),
            httpx.get(f"{address}/?token={wrong}", timeout=300),
        ]
    said = "".join([*capfd.readouterr(), caplog.text])
    told = "".join(f"{answer.text}{answer.headers}" for answer in answers)
    assert [answer.status_code for answer in answers] == [401, 401, 200]
    assert wrong not in said + told
    assert local.token not in said + told
    assert {answer.headers["referrer-policy"] for answer in answers} == {"no-referrer"}


@pytest.mark.proof
@pytest.mark.parametrize("readers", [1, 60])
def test_readers_who_take_nothing_cost_little_memory_and_are_gone_after_a_minute(
    folder, storage, local, server_at, readers: int
) -> None:
    StudyEngine.open(folder / "toy.yaml", name="grows", storage=storage)
    with failing(storage, "grows", 0.1), server_at(storage, local) as address, ExitStack() as kept:
        alive(address)
        paths = ("/api/studies/grows/events", "/studies/toy%205/download/report.html")
        before = resident_mib()
        waiting = [kept.enter_context(connected(address, buffer=4096)) for _ in range(readers)]
        for place, one in enumerate(waiting):
            one.sendall(asked(paths[place % 2]))
        assert alive(address)
        assert all(map(held, waiting))  # who waits for nobody answers before they are dropped
        most = before
        for _ in range(40):
            assert alive(address)
            most = max(most, resident_mib())
            time.sleep(0.5)
        for one in waiting:
            until_dropped(one)
        assert most - before < 300
        assert alive(address)
    storage.delete("grows")


@pytest.mark.proof
def test_a_client_of_a_byte_a_second_is_gone_after_its_ten_seconds(
    storage, local, server_at
) -> None:
    with server_at(storage, local) as address, connected(address) as talker:
        words = asked(TOY, f"X: {'x' * 200}")
        said = said_until_dropped(talker, words, every_s=1)
        assert said < len(words)
        assert alive(address)
