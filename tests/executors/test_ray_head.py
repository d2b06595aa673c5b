"""Whether a cluster's head answers: it is heard, missed for a while, and then given up."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from dse.errors import PluginError
from dse.executors.ray import head as ray_head
from dse.executors.ray.head import RayHead


def listening(port: int = 0) -> socket.socket:
    """Somebody who answers."""
    return socket.create_server(("127.0.0.1", port))


def address_of(server: socket.socket) -> str:
    return f"127.0.0.1:{server.getsockname()[1]}"


@pytest.fixture
def server() -> Iterator[socket.socket]:
    with listening() as one:
        yield one


def test_a_head_that_answers_is_there(server: socket.socket) -> None:
    assert RayHead(f"ray://{address_of(server)}").answers()


def test_a_head_that_is_silent_for_a_moment_is_missed_and_heard_again(
    server: socket.socket,
) -> None:
    head, port = RayHead(address_of(server)), server.getsockname()[1]
    server.close()
    assert not head.answers()
    with listening(port):
        assert head.answers()
    assert not head.gone


def test_a_head_that_stays_silent_is_gone(
    server: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    head, address = RayHead(address_of(server)), address_of(server)
    server.close()
    monkeypatch.setattr(ray_head, "_AWAY_S", 0.0)
    with pytest.raises(PluginError, match=f"{address} is gone: .*refused") as caught:
        head.answers()
    assert "dse resume" in caught.value.hint
    assert head.gone


def test_a_head_that_cannot_be_reached_from_here_is_not_watched(server: socket.socket) -> None:
    address = address_of(server)
    server.close()
    assert RayHead(address).answers()
