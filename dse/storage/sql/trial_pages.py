"""Pages: compressed copies of finished trials' rows, from which large studies are read fast.

A page is written once, when its last trial has finished, and never changes. The rows remain the
authoritative data: where a page is missing or damaged, they are read instead.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator, Sequence
from io import BytesIO
from typing import Any
from zipfile import BadZipFile

import numpy as np
from sqlalchemy import Connection, func, insert, select

from dse.core.trials import TIMES, Trials, objects
from dse.core.values import Floats
from dse.storage.sql.codec import failure_of, failure_text
from dse.storage.sql.tables import pages

PAGE = 4096
"""Number of trials per page."""

MOST_AT_ONCE = 16
"""Maximum number of pages written by one call; more are written by later calls."""

_PLAIN = ("number", "told", "state", "cost_s", "measured", "attempts", "worker", "ended")
_MAPS = ("metrics", "spread")
_BAD = (BadZipFile, zlib.error, OSError, EOFError, ValueError, KeyError, TypeError, AttributeError)


def missing(connection: Connection, study: int, finished: int) -> range:
    """Return the numbers of the pages of finished trials that are full but not written yet."""
    held = select(func.coalesce(func.max(pages.c.seq) + 1, 0)).where(pages.c.study == study)
    first = connection.execute(held).scalar_one()
    return range(first, min(finished // PAGE, first + MOST_AT_ONCE))


def write(connection: Connection, study: int, seq: int, trials: Trials) -> None:
    """Write one page: a compressed copy of trials, in the order in which they finished."""
    content = pack(trials)
    row = {"study": study, "seq": seq, "content": content, "sum": zlib.crc32(content)}
    connection.execute(insert(pages), row)


def read_pages(connection: Connection, study: int) -> Iterator[Trials]:
    """Yield the trials of the pages in order, up to the first damaged or missing page."""
    found = connection.execute(
        select(pages.c.seq, pages.c.content, pages.c.sum)
        .where(pages.c.study == study)
        .order_by(pages.c.seq)
    )
    for place, (seq, content, kept) in enumerate(found):
        if seq != place or not isinstance(content, bytes) or zlib.crc32(content) != kept:
            return
        try:
            page = unpack_trials(content)
        except _BAD:
            return
        if not np.array_equal(page.ended, np.arange(seq * PAGE, (seq + 1) * PAGE)):
            return
        yield page


def pack(trials: Trials) -> bytes:
    """Pack trials into a compressed archive of NumPy arrays; texts are arrays of bytes."""
    file = BytesIO()
    lines = {
        "designs": [_line(held) for held in trials.designs],
        "faults": [failure_text(failure) or "" for failure in trials.failures],
        **{name: [json.dumps(key) for key in getattr(trials, name)] for name in _MAPS},
    }
    plain: dict[str, Any] = {name: getattr(trials, name) for name in (*_PLAIN, *TIMES)}
    maps: dict[str, Any] = {f"{name}_values": _matrix(trials, name) for name in _MAPS}
    texts: dict[str, Any] = {name: _bytes(text) for name, text in lines.items()}
    np.savez_compressed(file, **plain, **maps, **texts)
    return file.getvalue()


def unpack_trials(content: bytes) -> Trials:
    """Return the trials in an archive that :func:`pack` wrote.

    Invalid content raises one of the errors in ``_BAD``.
    """
    with np.load(BytesIO(content), allow_pickle=False) as held:
        failures = _lines(held["faults"])
        known = {text: failure_of(text or None) for text in set(failures)}
        plain: dict[str, Any] = {name: held[name] for name in _PLAIN}
        untimed = np.full(len(plain["number"]), np.nan)  # pages of older versions have no times
        plain |= {name: held.get(name, untimed) for name in TIMES}
        maps: dict[str, Any] = {name: _columns(held, name) for name in _MAPS}
        return Trials(
            designs=objects(_lines(held["designs"])),
            failures=objects([known[text] for text in failures]),
            **plain,
            **maps,
        )


def _line(held: Any) -> str:  # a Design or its JSON
    return held if isinstance(held, str) else json.dumps(dict(held))


def _matrix(trials: Trials, name: str) -> Floats:
    columns = list(getattr(trials, name).values())
    return np.array(columns).reshape(len(columns), len(trials))


def _columns(held: Any, name: str) -> dict[str, Floats]:
    keys = [json.loads(line) for line in _lines(held[name]) if line]
    return dict(zip(keys, held[f"{name}_values"], strict=True))


def _bytes(lines: Sequence[str]) -> Any:
    return np.frombuffer("\n".join(lines).encode(), dtype=np.uint8)


def _lines(held: Any) -> list[str]:
    return held.tobytes().decode().split("\n")
