"""Masking of passwords in texts, and removal of credentials from child-process environments."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import unquote

HIDDEN = "***"
"""Replacement of a password in a text."""

STORAGE_VARIABLE = "DSE_STORAGE"
_OURS = (STORAGE_VARIABLE, "DSE_TOKEN")
_PASSWORD_VARIABLE = "PGPASSWORD"  # noqa: S105 - its name

_WEB = frozenset({"file", "ftp", "git", "gs", "http", "https", "ray", "s3", "ssh", "ws", "wss"})
"""Schemes other than databases; only a well-formed password is masked in their URLs."""

_FILES = ("sqlite", "memory")
"""Schemes whose URLs have a path but no host."""

_OPEN_KEYS = frozenset(
    (
        *("application_name", "cache", "channel_binding", "check_same_thread", "client_encoding"),
        *("connect_timeout", "database", "dbname", "detect_types", "gssencmode"),
        *("host", "hostaddr", "immutable", "isolation_level", "keepalives"),
        *(
            "keepalives_count",
            "keepalives_idle",
            "keepalives_interval",
            "krbsrvname",
            "load_balance_timeout",
        ),
        *("mode", "nolock", "plugin", "port", "psow"),
        *("service", "sslcert", "sslcertmode", "sslcrl", "sslkey"),
        *("sslmode", "sslrootcert", "sslsni", "target_session_attrs", "tcp_user_timeout"),
        *("timeout", "uri", "user", "username", "vfs"),
    )
)
"""URL query parameters whose values are shown; the value of any other may be secret."""

_START = re.compile(
    r"(?<![\w+.\-/:@])(?:(?P<scheme>[A-Za-z][A-Za-z0-9+.\-]*)://"
    r"|(?:postgres\w*|pgsql|psycopg\d?|mysql|mariadb)(?:\+\w+)?:/?(?=[^/\s]*[:@]))"
)
_STRICT = re.compile(
    r"[^\s:/?#@'\"%]*(?:%[0-9A-Fa-f]{2}[^\s:/?#@'\"%]*)*"  # user
    r"(?::[^\s:/?#@'\"]*)?@"  # password
    r"(?:[\w.\-,%:]|\[[0-9A-Fa-f:.%]+\])*"  # hosts and ports
    r"(?:[/?#][^\s@'\"`<>\\]*)?"
)
"""Unambiguous rest of a URL after its scheme: user, password, hosts and path."""

_QUOTES = "'\"`"
_AFTER = re.compile(r"[.,;:)\]>`'\"]*(?=\s|$)")
"""Punctuation that may follow a URL in a sentence."""

_NOTHING = re.compile(r"\Z")

_COLON = re.compile(r":|%3a", re.IGNORECASE)
_PORT = re.compile(r"[0-9]{0,5}(?=[/?#,\s'\"`)\]>;:]|[.,](?:\s|$)|$)")
_END = re.compile(r"[/?#\s'\"`]")
_PAIR = re.compile(r"(?<=[?&;])([^=&;\s]+)=([^&\s'\"`<>]*)")
_WORDS = re.compile(
    r"(?i)\b((?:ssl|pg)?(?:password|passwd|passphrase|passfile))(\s*=\s*)"
    r"('(?:[^'\\]|\\.)*'|\"[^\"]*\"|[^\s&'\"]+)"
)
_QUICK = re.compile(r"(?i)://|pass(?:wo?r?d|file|phrase)|(?:postgres|pgsql|psycopg|mysql|mariadb)")

_taken: dict[str, str] = {}


def mask(text: str) -> str:
    """Return the text with passwords of URLs and connection strings masked.

    In a malformed URL, everything that may be the password is masked.
    """
    if not _QUICK.search(text):
        return text
    parts: list[str] = []
    end = 0
    starts = list(_START.finditer(text))
    for place, start in enumerate(starts):
        if start.start() < end:
            continue
        line_end = text.find("\n", start.end())
        until = len(text) if line_end < 0 else line_end
        apart = (one.start() for one in starts[place + 1 :] if _is_apart(text, one.start()))
        until = min(until, next(apart, until))
        quote = text[start.start() - 1 : start.start()]
        after = re.compile(re.escape(quote)) if quote and quote in _QUOTES else _AFTER
        rest = _masked_rest(text[start.end() : until], start["scheme"], after)
        parts += [text[end : start.end()], rest]
        end = until
    return _WORDS.sub(_hide_word, "".join([*parts, text[end:]]))


def mask_url(url: str) -> str:
    """Return a URL, possibly a malformed one, with its password masked."""
    start = re.match(r"[A-Za-z][A-Za-z0-9+.\-]*:/{0,2}(?!/*[0-9]*@)", url)
    if start is None or ("://" not in url and "@" in url):  # user:password@host, without a scheme
        server = re.match(r"(?:postgres\w*|pgsql|psycopg\d?|mysql|mariadb)(?:\+\w+)?:/?", url)
        head = server[0] if server else ""
        return head + _masked_rest(url[len(head) :], None, _NOTHING)
    return start[0] + _masked_rest(url[start.end() :], start[0].partition(":")[0], _NOTHING)


def has_secret(url: str) -> bool:
    """Return whether a URL contains a password, or a part that may be one."""
    return mask_url(url) != url


def storage_words(url: str) -> str:
    """Return the command-line option that selects a storage, without its password.

    If the URL has a password, the option refers to ``$DSE_STORAGE``, or leaves the password to
    ``PGPASSWORD`` or ``~/.pgpass``, where PostgreSQL's client library reads it.
    """
    if not has_secret(url):
        return f"--storage {shlex.quote(url)}"
    if os.environ.get(STORAGE_VARIABLE, _taken.get(STORAGE_VARIABLE)) == url:
        return f'--storage "${STORAGE_VARIABLE}"'
    bare = mask_url(url).replace(f":{HIDDEN}@", "@", 1)
    if not has_secret(bare) and HIDDEN not in bare:
        return f"--storage {shlex.quote(bare)} (its password: PGPASSWORD or ~/.pgpass)"
    return f'--storage "${STORAGE_VARIABLE}" (set it to the URL first)'


def take_password() -> str | None:
    """Return the value of ``PGPASSWORD`` as the password of a study storage, if it is set.

    From then on the variable is private: it is removed from child-process environments.
    """
    if _PASSWORD_VARIABLE in os.environ:
        _taken[_PASSWORD_VARIABLE] = os.environ[_PASSWORD_VARIABLE]
    return _taken.get(_PASSWORD_VARIABLE)


def children_environment() -> dict[str, str]:
    """Return the environment for a user's program, without private variables such as passwords."""
    return {name: value for name, value in os.environ.items() if name not in _private()}


@contextmanager
def private_environment() -> Iterator[None]:
    """Remove the private variables from the environment inside the block.

    Private variables, such as ``PGPASSWORD``, are for this program only. Processes started within
    the block, and their children, do not inherit them.
    """
    held = {name: os.environ[name] for name in _private() if name in os.environ}
    _taken.update(held)
    for name in held:
        del os.environ[name]
    try:
        yield
    finally:
        os.environ.update(held)


def forget_environment() -> None:
    """Remove the private variables from the environment permanently; called in workers."""
    for name in _private():
        os.environ.pop(name, None)


def _private() -> tuple[str, ...]:
    return (*_OURS, _PASSWORD_VARIABLE) if _PASSWORD_VARIABLE in _taken else _OURS


def _is_apart(text: str, place: int) -> bool:
    """Return whether the URL at index ``place`` of the text begins a word or a quotation.

    A URL that begins within a word may be part of a password.
    """
    before = text[max(0, place - 2) : place]
    return before[-1:].isspace() or (before[:1].isspace() and before[-1:] in "'\"`(")


def _masked_rest(rest: str, scheme: str | None, after: re.Pattern[str]) -> str:
    """Return the rest of a URL after its scheme, up to the end of the line, with masked secrets.

    The URL counts as well-formed only if ``after`` matches the text that follows it.
    """
    kind = (scheme or "").lower().partition("+")[0]
    if kind in _FILES and rest.startswith("/"):
        return _masked_pairs(rest)
    strict = _STRICT.match(rest)
    if strict is not None and after.match(rest, strict.end()):
        at = strict[0].rindex("@")
        user, colon, password = rest[:at].partition(":")
        coded = _COLON.search(user)
        if coded is not None:
            user, colon, password = user[: coded.start()], coded[0], user[coded.end() :]
        return f"{user}{colon}{HIDDEN if password else ''}{_masked_pairs(rest[at:])}"
    if kind in _WEB:
        return rest
    return _masked_pairs(_mask_malformed_url(rest))


def _mask_malformed_url(rest: str) -> str:
    at, colon = rest.rfind("@"), _COLON.search(rest)
    if colon is None or rest.startswith("[") or (rest.startswith("/") and at < 0):
        return rest
    if colon.start() < at:
        return f"{rest[: colon.end()]}{HIDDEN}{rest[at:]}"
    end = _END.search(rest)
    own = end.start() if end else len(rest)
    if at < 0 and colon.end() <= own and not _PORT.match(rest, colon.end()):
        return f"{rest[: colon.end()]}{HIDDEN}{rest[own:]}"
    return rest


def _masked_pairs(rest: str) -> str:
    if "=" not in rest or "?" not in rest:
        return rest
    head, mark, pairs = rest.partition("?")
    return head + _PAIR.sub(_hide_pair, mark + pairs)


def _hide_pair(pair: re.Match[str]) -> str:
    known = unquote(pair[1]).lower() in _OPEN_KEYS
    return pair[0] if known or not pair[2] else f"{pair[1]}={HIDDEN}"


def _hide_word(word: re.Match[str]) -> str:
    return f"{word[1]}{word[2]}{HIDDEN}"
