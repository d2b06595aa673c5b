"""Search for a free port of this machine."""

from __future__ import annotations

import socket


def find_free_port() -> int:
    """Return a port of the loopback interface that was free at the time of the call."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def is_in_use(host: str, port: int) -> bool:
    """Return whether a program accepts connections on a port."""
    with socket.socket() as probe:
        probe.settimeout(1.0)
        return probe.connect_ex((host, port)) == 0
