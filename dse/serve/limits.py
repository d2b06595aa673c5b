"""Limits per kind of connection and per client, so that no client can block the others."""

from __future__ import annotations

from collections import Counter
from ipaddress import IPv6Address, ip_address

CONNECTIONS = 512
"""Open connections of all kinds; beyond it the one that has waited longest is closed."""

STREAMS = CONNECTIONS // 4
"""Event streams; further readers get the present state and poll."""

REQUESTS = CONNECTIONS * 3 // 8
"""Requests that are answered at once; further ones are refused for a second."""

PLACE = "dse.place"
"""The key of an ASGI scope whose request holds a place: its connection is not closed for others."""

_RESERVED_FILES = 128
"""For the storage, children, temporary files and libraries."""

_FEWEST = 16
_CUSTOMER_BITS = 64


class ClientSlots:
    """A number of places that clients share; each may hold as many as are free.

    A client alone gets half of them, the next one half of the rest, and so on: a newcomer always
    finds a place, and nobody needs to know how many clients there are.

    Args:
        most: how many places there are.

    Source:
        Choudhury, Hahne: Dynamic queue length thresholds for shared-memory packet switches,
        IEEE/ACM Transactions on Networking 6(2), 1998, eq. 1 with alpha = 1.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._held: Counter[str] = Counter()

    def enter(self, client: str) -> bool:
        """Take a place for the client, if it may have one more."""
        if self._held[client] >= self._most - self._held.total():
            return False
        self._held[client] += 1
        return True

    def leave(self, client: str) -> None:
        """Give one of the client's places back."""
        self._held[client] -= 1
        if not self._held[client]:
            del self._held[client]


def client_of(address: tuple[str, int] | None) -> str:
    """Return who counts as one client: an IPv4 address, or the /64 network of an IPv6 one.

    Args:
        address: host and port of the other side, as ASGI has them.
    """
    host = "" if address is None else address[0]
    try:
        found = ip_address(host)
    except ValueError:
        return host
    if not isinstance(found, IPv6Address) or found.is_loopback:
        return host
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    shift = 128 - _CUSTOMER_BITS
    return f"{IPv6Address(int(found) >> shift << shift)}/{_CUSTOMER_BITS}"


def compute_connection_limit() -> int:
    """Return how many connections may be open, given how many files the process may open."""
    try:
        import resource
    except ImportError:  # on Windows, which counts no files
        return CONNECTIONS
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    room = CONNECTIONS if files == resource.RLIM_INFINITY else files - _RESERVED_FILES
    return max(_FEWEST, min(CONNECTIONS, room))
