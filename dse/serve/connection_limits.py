"""Limits on concurrent connections per kind and per client, so that none blocks the others."""

from __future__ import annotations

from collections import Counter
from ipaddress import IPv6Address, ip_address

CONNECTIONS = 512
"""Maximum number of open connections; beyond it the longest idle one is closed."""

STREAMS = CONNECTIONS // 4
"""Maximum number of event streams; further readers get the present state and poll."""

REQUESTS = CONNECTIONS * 3 // 8
"""Maximum number of requests answered at once; further ones may be retried after a second."""

PLACE = "dse.place"
"""Key of an ASGI scope whose request holds a slot: its connection is not closed for others."""

_RESERVED_FILES = 128
"""File descriptors reserved for the storage, child processes, temporary files and libraries."""

_FEWEST = 16
_CUSTOMER_BITS = 64


class ClientSlots:
    """Pool of connection slots, of which a client may hold at most as many as are still free.

    A single client gets half of them, the next one half of the rest, and so on: a new client always
    finds a slot, and the number of clients need not be known.

    Args:
        most: the number of slots.

    Source:
        Choudhury, Hahne: Dynamic queue length thresholds for shared-memory packet switches,
        IEEE/ACM Transactions on Networking 6(2), 1998, eq. 1 with alpha = 1.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._held: Counter[str] = Counter()

    def enter(self, client: str) -> bool:
        """Take a slot for the client and return true; return false if it may not have another."""
        if self._held[client] >= self._most - self._held.total():
            return False
        self._held[client] += 1
        return True

    def leave(self, client: str) -> None:
        """Release one of the connection slots that a client holds."""
        self._held[client] -= 1
        if not self._held[client]:
            del self._held[client]


def client_of(address: tuple[str, int] | None) -> str:
    """Return the key of a client: its IPv4 address, or the /64 network of its IPv6 address.

    Args:
        address: host and port of the client, as ASGI gives them.
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
    """Return the maximum number of open connections, given the process's limit on open files."""
    try:
        import resource
    except ImportError:  # on Windows, which has no such limit
        return CONNECTIONS
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    room = CONNECTIONS if files == resource.RLIM_INFINITY else files - _RESERVED_FILES
    return max(_FEWEST, min(CONNECTIONS, room))
