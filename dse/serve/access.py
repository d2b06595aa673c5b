"""Access control for reading and changing: host names, access token, same-origin checks."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import socket
from dataclasses import dataclass
from ipaddress import ip_address
from urllib.parse import urlsplit

COOKIE = "dse-pass"
"""Name of the cookie that lets a browser read where that requires the token; never change."""

_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
_BEARER = "bearer "


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessRules:
    """Access rules of one server: token, host names, and who may read.

    Args:
        token: required for every change, and for reading if the server is not ``open``.
        hosts: the host names by which a request may address the server.
        open: whether everyone who reaches the server may read.
        addresses: whether a request may address the server by any IP address. This is safe against
            DNS rebinding: an untrusted page sends the host name that it rebound, never an address.
    """

    token: str
    hosts: frozenset[str] = _LOOPBACK
    open: bool = True
    addresses: bool = False

    @staticmethod
    def at(host: str, *, token: str | None = None, allowed: tuple[str, ...] = ()) -> AccessRules:
        """Return the rules for a server listening on ``host``; by default, with a new token."""
        own = _plain(host)
        loopback = _is_loopback(own)
        names = {own, socket.gethostname().lower(), socket.getfqdn().lower()}
        return AccessRules(
            token=token or secrets.token_urlsafe(24),
            hosts=_LOOPBACK | {name.lower() for name in allowed} | (set() if loopback else names),
            open=loopback,
            addresses=not loopback,
        )

    @property
    def reading_pass(self) -> str:
        """Value of the cookie that permits reading: an HMAC (keyed hash) with the access token."""
        return hmac.new(self.token.encode(), b"dse may look", hashlib.sha256).hexdigest()

    def knows_host(self, header: str) -> bool:
        """Return whether the host in a request's ``Host`` header is one of this server."""
        name = _plain(urlsplit(f"//{header}").hostname or "") if _is_host(header) else ""
        return name in self.hosts or (self.addresses and _is_address(name))

    def may_look(self, authorization: str, cookie: str) -> bool:
        """Return whether a request with this authorization header or this cookie may read data."""
        return self.open or _same(cookie, self.reading_pass) or self.may_change(authorization)

    def may_change(self, authorization: str) -> bool:
        """Return whether the authorization header has the token, which permits changes."""
        token = authorization[len(_BEARER) :] if authorization.lower().startswith(_BEARER) else ""
        return _same(token.strip(), self.token)


def same_origin(host: str, origin: str | None, fetch_site: str | None) -> bool:
    """Return whether a request comes from a page of this server, or from no page at all.

    Args:
        host: the header ``Host``.
        origin: the header ``Origin``; ``None`` if absent, as from programs other than browsers.
        fetch_site: the header ``Sec-Fetch-Site``; ``None`` if absent.
    """
    if fetch_site not in (None, "same-origin"):
        return False
    if origin is None:
        return True
    scheme, _, place = origin.partition("://")
    return scheme in ("http", "https") and place.lower() == host.lower()


def _same(given: str, known: str) -> bool:
    """Return whether two secrets are equal, in time independent of their contents."""
    return hmac.compare_digest(given.encode(), known.encode())


def _plain(host: str) -> str:
    return host.strip().strip("[]").lower()


def _is_host(header: str) -> bool:
    try:
        return not set(header) & set("/@?#\\") and urlsplit(f"//{header}").port != 0
    except ValueError:
        return False


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


def _is_loopback(name: str) -> bool:
    return name == "localhost" or (_is_address(name) and ip_address(name).is_loopback)
