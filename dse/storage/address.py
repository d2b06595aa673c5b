"""Syntax check of a database URL before a connection is opened, with hints on the fix."""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import unquote

from dse.errors import StorageError, nearest
from dse.system.credentials import mask_url

FORMS = "sqlite:///relative.db, sqlite:////absolute.db, postgresql+psycopg://user@host/database"
_SERVER = "postgresql+psycopg://user@host:5432/database"
_DRIVERS = {"postgresql": ("psycopg", "psycopg2"), "sqlite": ("pysqlite",)}
_LARGEST_PORT = 65_535

_FILE_KEYS = ("timeout", "uri", "mode", "cache", "immutable", "nolock", "vfs", "psow")
_FILE_NUMBERS = ("timeout",)
_SERVER_KEYS = (
    *("host", "hostaddr", "port", "user", "password", "passfile", "dbname", "options", "service"),
    *("connect_timeout", "client_encoding", "application_name", "fallback_application_name"),
    *("keepalives", "keepalives_idle", "keepalives_interval", "keepalives_count"),
    *("tcp_user_timeout", "target_session_attrs", "load_balance_hosts", "channel_binding"),
    *("sslmode", "sslcert", "sslkey", "sslpassword", "sslrootcert", "sslcrl", "sslcrldir"),
    *("sslsni", "sslcertmode", "sslnegotiation", "sslcompression", "ssl_min_protocol_version"),
    *("ssl_max_protocol_version", "requirepeer", "require_auth", "gssencmode", "krbsrvname"),
    *("gsslib", "gssdelegation", "replication", "scram_client_key", "scram_server_key"),
    *("min_protocol_version", "max_protocol_version", "sslkeylogfile", "requiressl"),
    *("oauth_issuer", "oauth_client_id", "oauth_client_secret", "oauth_scope", "autocommit"),
)


def check_address(url: str) -> None:
    """Check the syntax of a URL of SQLite or PostgreSQL, without opening it.

    Raises:
        StorageError: the URL is invalid; the hint shows a valid form.
    """
    fault = next(_faults(url), None)
    if fault is not None:
        problem, hint = fault
        raise StorageError(f"{mask_url(url)!r} {problem}", hint=hint)


def _faults(url: str) -> Iterator[tuple[str, str]]:
    scheme, _, rest = url.partition("://")
    kind, plus, driver = scheme.partition("+")
    if "\0" in url:
        yield "contains a NUL character", f"write {FORMS}"
    if plus and driver not in _DRIVERS[kind]:
        best = _DRIVERS[kind][0]
        hint = (
            f"did you mean {kind}+{best}?"
            if kind == "postgresql"
            else "write sqlite:///relative.db"
        )
        yield f"names {driver!r}, which is no driver of {kind}", hint
    place, _, query = rest.partition("?")
    if kind == "sqlite":
        yield from _query_faults(query, _FILE_KEYS, numbers=_FILE_NUMBERS)
        return
    if re.search(r"%(?![0-9A-Fa-f]{2})", rest):
        yield "has an invalid '%' escape", "'%' itself is written %25"
    yield from _place_faults(rest)
    yield from _query_faults(query, _SERVER_KEYS, numbers=("connect_timeout",))
    host = place.partition("/")[0].rpartition("@")[2]
    if not host.strip(":") and not place.partition("/")[2] and not query:
        yield "names no host and no database", f"write {_SERVER}"


def _place_faults(rest: str) -> Iterator[tuple[str, str]]:
    """Yield each syntax error in user, password, host and port of a server's URL, with a hint.

    If the password has unescaped characters such as ``@`` or ``/``, any of these parts may contain
    a piece of it.
    """
    own, query = rest.partition("?")[::2]
    ends = "@" in query and re.search(":|%3a", own, re.IGNORECASE) is not None
    if own.count("@") > 1 or "@" in own.partition("/")[2] or ends:
        hint = "write '@' as %40, ':' as %3A, '/' as %2F and '?' as %3F"
        yield "has an unescaped special character in user or password", hint
    host = own.rpartition("@")[2].partition("/")[0]
    if re.search(r"[\s\"'<>\\^`{|}]", host):
        yield "contains a space or a quote, which is invalid in a host", f"write {_SERVER}"
    found = re.fullmatch(r"\[([0-9A-Fa-f:.%]*)\](?::(.*))?", host)
    if found is None and host.startswith("["):
        yield "has an invalid address in brackets", "write [::1] or [::1]:5432"
    ports = [found[2] or ""] if found else [one.partition(":")[2] for one in host.split(",")]
    for port in ports:
        if port and not re.fullmatch(r"[0-9]+", port):
            hint = f"write {_SERVER}; a password needs a user before it and '@' after it"
            yield "has a port that is no number", hint
        elif port and not 0 < int(port[:9]) <= _LARGEST_PORT:
            yield f"has the port {port[:9]}", f"a port is 1 to {_LARGEST_PORT}, mostly 5432"


def _query_faults(
    query: str, known: tuple[str, ...], *, numbers: tuple[str, ...]
) -> Iterator[tuple[str, str]]:
    for pair in filter(None, query.split("&")):
        key, _, value = pair.partition("=")
        name = unquote(key)
        if name not in known:
            near = nearest(name, known)
            hint = near if near.startswith("did you mean") else f"such as {', '.join(known[:6])}"
            yield f"has an unknown parameter {name!r}", hint
        elif not value:
            yield f"gives {name!r} no value", f"leave {name!r} out, or give it one"
        elif name in numbers and not re.fullmatch(r"[0-9]+", value):
            yield f"gives {name!r} the value {value!r}", "it is a whole number of seconds"
